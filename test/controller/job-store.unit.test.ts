import { expect, it } from "vitest";
import { LAUNCH_FINALIZER, NAME_LABEL } from "../../src/api/names.ts";
import type { Job } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { createJobStore } from "../../src/controller/job-store.ts";
import type { KubeClient } from "../../src/kube/index.ts";

const job = (resourceVersion: string, more: Partial<Job["metadata"]> = {}): Job => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: {
    name: "report-1",
    namespace: "team",
    uid: "u1",
    resourceVersion,
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { [NAME_LABEL]: "report" },
    ...more,
  },
});
const deletionTimestamp = "2026-01-01T00:00:01Z";

it("a Job that goes with its finalizer stays gone when the watch was faster than the answer", async () => {
  const client = {
    async patch() {
      store.observeDeleted(job("2", { deletionTimestamp }));
      return job("2", { deletionTimestamp });
    },
  } as unknown as KubeClient;
  const { jobs, pods } = resources;
  const store = createJobStore({ client, jobs, pods, onChange: () => undefined });
  store.observe(job("1", { deletionTimestamp, finalizers: [LAUNCH_FINALIZER] }));
  const [known] = store.cached("team/report");
  await store.dropFinalizer(known as NonNullable<typeof known>);
  expect(store.cached("team/report")).toEqual([]);
});
