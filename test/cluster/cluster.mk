##@ A real Kubernetes for tests, the demo and people (test/cluster/README.md)
CLUSTER := node test/cluster/main.ts

.PHONY: cluster-up
cluster-up: deps ## start one that stays: [MODE=nodes|simulated|control-plane|kind|existing] [NODES=2] [NAME=dev]
	@$(CLUSTER) up $(if $(MODE),--mode $(MODE)) $(if $(NODES),--nodes $(NODES)) $(if $(NAME),--name $(NAME))

.PHONY: cluster-down
cluster-down: deps ## end it: [NAME=dev], or all: ALL=1
	@$(CLUSTER) down $(if $(ALL),--all,$(if $(NAME),--name $(NAME)))

.PHONY: cluster-status
cluster-status: deps ## which there are, their processes, how to use them
	@$(CLUSTER) status

.PHONY: cluster-tools
cluster-tools: deps ## build its binaries into the cache: [TOOLS="kubectl helm"], default all
	@$(CLUSTER) tools $(TOOLS)
