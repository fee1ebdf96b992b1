import { defineConfig } from "vitest/config";

/**
 * Projects by what a test needs, so that each can run alone:
 *   unit     nothing but Node
 *   redis    redis-server / redis-sentinel processes
 *   cluster  a real control plane (no root)
 *   nodes    real pods (root)
 *   e2e      the chart on real nodes, whatever breaks (root; an hour; not part of make test)
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/{api,domain,telemetry,cli,house}/**/*.test.ts", "test/**/*.unit.test.ts"],
          // Only against hanging: a busy machine takes its time.
          testTimeout: 120_000,
          // The model takes one for most of the time.
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: "redis",
          include: ["test/lock/**/*.test.ts"],
          exclude: ["**/*.unit.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // They wait for facts, mostly: each file has servers of its own.
          maxWorkers: 4,
          maxConcurrency: 12,
        },
      },
      {
        test: {
          name: "cluster",
          globalSetup: ["test/cluster/vitest-setup.ts"],
          include: ["test/{kube,controller,chaos,crd,chart,conformance}/**/*.test.ts"],
          exclude: ["**/*.unit.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          // They wait for the next tick, mostly.
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.e2e.ts"],
          fileParallelism: false,
          testTimeout: 900_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: "nodes",
          include: ["test/{cluster,e2e,run-locks}/**/*.test.ts"],
          exclude: ["**/*.unit.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          // Each file has a cluster of its own.
          maxWorkers: 2,
        },
      },
    ],
  },
});
