import { expect, it } from "vitest";
import type { LockedCronJob } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { createScheduleCache } from "../../src/controller/schedule-cache.ts";
import { createStatusWriter } from "../../src/controller/status-writer.ts";
import { rankOf } from "../../src/domain/election.ts";
import type { KubeClient } from "../../src/kube/index.ts";
import { manualTime } from "./manual-time.ts";

const KEY = "team/report";
const REPLICAS = ["a", "b"];
const [first, second] = REPLICAS.toSorted(
  (x, y) => rankOf(x, REPLICAS, KEY) - rankOf(y, REPLICAS, KEY),
) as [string, string];

it("two replicas that see Redis differently do not write over each other for ever", async () => {
  const time = manualTime();
  let owner = {
    metadata: { name: "report", namespace: "team", uid: "u1", generation: 1 },
    spec: { schedule: "@yearly" },
  } as LockedCronJob;
  const writes: string[] = [];
  const writerOf = (replica: string, quorum: boolean) =>
    createStatusWriter({
      client: {
        async patch(_: unknown, __: unknown, { body }: { body: { status: object } }) {
          writes.push(replica);
          owner = { ...owner, status: { ...owner.status, ...body.status } };
        },
      } as unknown as KubeClient,
      lockedCronJobs: resources.lockedCronJobs,
      owners: { cached: () => owner, read: async () => owner },
      ledgers: { cached: () => undefined },
      members: { live: () => REPLICAS },
      clock: time.clock,
      random: () => 0,
      replica,
      schedules: createScheduleCache(),
      lockBackend: () => ({ quorum, message: quorum ? "up" : "down" }),
      busy: () => false,
      onStep: () => Promise.resolve(),
    });
  await writerOf(first, true).reconcile(KEY);
  const other = writerOf(second, false);
  expect(await other.reconcile(KEY)).toMatchObject({ kind: "again" });
  await time.pass(5_000);
  expect(await other.reconcile(KEY)).toEqual({ kind: "done" });
  expect(writes).toEqual([first]);
});
