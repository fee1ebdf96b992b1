##@ End to end, on real nodes (root)
.PHONY: e2e
e2e: setup ## the chart installed, broken in every way, removed; ticks are counted (an hour)
	@vitest run --project nodes --project e2e test/e2e

.PHONY: e2e-core
e2e-core: setup ## only install, run, kill, upgrade, remove, install again
	@vitest run --project nodes test/e2e

KUBERNETES_VERSIONS := 1.34 1.37
.PHONY: e2e-versions
e2e-versions: setup ## e2e-core on the oldest and the newest Kubernetes (each builds its own: 10 min the first time)
	@for version in $(KUBERNETES_VERSIONS); do \
	  echo "== Kubernetes $$version"; \
	  LOCKEDCRON_KUBERNETES=$$version vitest run --project nodes test/e2e; done

.PHONY: kind-e2e
kind-e2e: deps ## e2e-core on kind, for machines with Docker: [KIND_IMAGE=kindest/node:...]
	@LOCKEDCRON_E2E=kind KIND_IMAGE=$(KIND_IMAGE) vitest run --project nodes test/e2e

.PHONY: kind-demo
kind-demo: deps ## the chart on kind, for machines with Docker; stays until make cluster-down NAME=kind-demo
	@node test/e2e/kind-demo.ts
