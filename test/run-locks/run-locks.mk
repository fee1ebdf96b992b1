##@ Run locks, on real nodes (root)
.PHONY: soak-locks
soak-locks: setup ## runs that share a mutex on real pods under random faults: [SOAK_RUNS=200] [SOAK_SEED=n] (root)
	@node test/run-locks/soak.ts
