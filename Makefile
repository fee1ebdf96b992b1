# Plain `make` lists the targets. Recipes stay a few lines long: the work is in TypeScript under
# tools/, test/ and bench/, run by the Node that package.json pins.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
MACHINE_PATH := $(subst $(CURDIR)/node_modules/.bin:,,$(PATH))
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

##@ Start here
.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z0-9-]*:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: setup ## everything CI runs: checks, all tests, the short demo; ends with the count
	@node tools/test.ts

.PHONY: demo
demo: setup ## a cluster, five Redis, three replicas, and what happens when they break: [DEMO_FLAGS=--help]
	@node test/demo/main.ts $(DEMO_FLAGS)

.PHONY: demo-down
demo-down: deps ## end what DEMO_FLAGS=--keep left running
	@node test/demo/main.ts --down

##@ While you work
.PHONY: verify
verify: deps ## generated files, format, lint, types, unit tests, clean tree (no services)
	@node tools/verify.ts

.PHONY: test-unit
test-unit: deps ## the tests that need nothing but Node
	@vitest run --project unit

.PHONY: generate
generate: deps ## write the generated files (CRD, docs/config.md, docs/metrics.md)
	@node tools/generate.ts

.PHONY: tzdata
tzdata: deps ## take the time zones of TZDATA=DIR, a zoneinfo folder of a newer tz database, into the product
	@node tools/tzdata/generate.ts $(if $(TZDATA),--from $(TZDATA))

.PHONY: format
format: deps ## format all files
	@prettier --write --log-level warn .

.PHONY: lint
lint: deps ## lint
	@node tools/verify.ts lint

.PHONY: types
types: deps ## check types
	@node tools/verify.ts types

##@ Measure
.PHONY: bench
bench: bench-schedule bench-footprint bench-run-locks bench-tick bench-lock ## all of them, one after the other (about 40 min; results in bench/out)

.PHONY: bench-tick
bench-tick: setup ## tick to Job, beside native CronJob on the same cluster
	@node bench/tick.ts $(BENCH)

.PHONY: bench-footprint
bench-footprint: setup ## start to ready, CPU and memory of a replica at rest
	@node bench/footprint.ts $(BENCH)

.PHONY: bench-schedule
bench-schedule: deps ## the calendar: next, ranges, memory of 10,000 schedules
	@node --expose-gc bench/schedule.ts

.PHONY: bench-run-locks
bench-run-locks: setup ## what 1,000 live run locks cost: CPU, Redis calls (bench/out/run-locks.json)
	@node bench/run-locks.ts $(BENCH)

.PHONY: bench-lock
bench-lock: setup ## acquire and release beside raw commands and other Redlock libraries (bench/out/lock.json)
	@node bench/lock/main.ts $(BENCH)
	@node bench/lock/own.ts

.PHONY: soak
soak: setup ## the protocol's model with wide bounds and ten thousand random walks (an hour or more, 6 GB)
	@NODE_OPTIONS=--max-old-space-size=6000 LOCKEDCRON_MODEL=wide LOCKEDCRON_MODEL_WALKS=10000 \
		vitest run --project unit test/controller/model --testTimeout=7200000

##@ Upkeep
.PHONY: setup
setup: deps ## install what is missing: packages, Redis, cluster binaries (first time: about 10 min)
	@node tools/setup.ts

# The packages alone. npm runs on the machine's own Node: the one in node_modules is being replaced.
.PHONY: deps
deps:
	@node tools/installed.mjs 2>/dev/null || { \
	  echo "installing npm packages (once, about a minute)"; PATH="$(MACHINE_PATH)" npm ci --loglevel=error; }

node_modules: deps

.PHONY: clean
clean: ## remove what was built here (not the cache of cluster binaries)
	rm -rf node_modules dist coverage bench/out bench/node_modules

# Targets that live beside what they start: test/cluster/cluster.mk and its like.
include $(wildcard test/*/*.mk)
