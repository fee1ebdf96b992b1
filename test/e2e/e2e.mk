##@ End to end, on real nodes (root)
.PHONY: e2e
e2e: setup ## the chart installed, broken in every way, removed; ticks are counted (an hour)
	@vitest run --project nodes --project e2e test/e2e

.PHONY: e2e-core
e2e-core: setup ## only install, run, kill, upgrade, remove, install again
	@vitest run --project nodes test/e2e

.PHONY: e2e-rights
e2e-rights: setup ## a replica without each of its rights, one by one: what it is refused, and what it says (no root)
	@vitest run --project e2e test/e2e/rights

.PHONY: e2e-upgrade
e2e-upgrade: setup ## another version and this one, up, side by side, and down again: [LOCKEDCRON_PREVIOUS=vX.Y.Z or commit]
	@vitest run --project e2e test/e2e/upgrade

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
