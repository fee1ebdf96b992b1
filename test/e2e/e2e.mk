##@ End to end, on real nodes (root)
.PHONY: e2e
e2e: setup ## the chart installed, broken in every way, removed; ticks are counted (an hour)
	@vitest run --project nodes --project e2e test/e2e

.PHONY: e2e-core
e2e-core: setup ## only install, run, kill, upgrade, remove, install again
	@vitest run --project nodes test/e2e
