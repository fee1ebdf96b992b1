/** The lock of a live run is gone from Redis, or held by somebody else there: what becomes of it, and of the run. */
import { afterAll, describe, expect, it } from "vitest";
import { EventReason } from "../../src/api/reasons.ts";
import { until } from "../cluster/proc.ts";
import { NEVER_FINISHES, useWorld, type Lab } from "./world.ts";

const world = useWorld();
const labs: Lab[] = [];
const aLab = async (): Promise<Lab> => {
  const lab = await world().lab();
  labs.push(lab);
  return lab;
};
afterAll(() => Promise.all(labs.map((lab) => lab[Symbol.asyncDispose]())));

describe.concurrent("the lock of a run that somebody else has taken in Redis", () => {
  const take = (key: string, value: string) =>
    Promise.all(world().redis.map((server) => server.command("SET", key, value, "PX", 600_000)));

  it("is told, and the run ends as onLost says", async () => {
    const lab = await aLab();
    const replica = await lab.replica("a");
    const onLost = { leaseSeconds: 5, onLost: "Delete" } as const;
    await lab.create("one", { lock: onLost, job: NEVER_FINISHES });
    const [job] = await lab.seen.created("one", 1);
    await lab.patch("one", { suspend: true });
    const run = await lab.seen.until("it has started", () =>
      lab.seen.ledger("one")?.runs.find(({ jobUID }) => jobUID !== undefined),
    );
    await take(run.lockKey, "somebody");
    await lab.seen.until("the event", () => lab.seen.events(EventReason.LockLost)[0]);
    await lab.seen.until("its Job is gone", () => job!.deletedAt);
    await Promise.all(world().redis.map((server) => server.command("DEL", run.lockKey)));
    expect(lab.seen.events(EventReason.LockLost)).toHaveLength(1);
    await until("the metrics", 90_000, async () => {
      const metrics = await replica.metrics();
      const held = /run_lock_hold_seconds_count [1-9]/.test(metrics);
      return held && /lock_renewals_total\{outcome="lost"\} [1-9]/.test(metrics);
    });
    // For debugging only: this replica logs at level info.
    expect(lab.seen.events(EventReason.LockAcquired)).toEqual([]);
  });

  it("is taken anew when it was only forgotten", async () => {
    const lab = await aLab();
    const replica = await lab.replica("a");
    await lab.create("one", { lock: { leaseSeconds: 5 }, job: NEVER_FINISHES });
    const run = await lab.seen.until("it has started", () =>
      lab.seen.ledger("one")?.runs.find(({ jobUID }) => jobUID !== undefined),
    );
    // An edit is for the next run.
    await lab.patch("one", { lock: { leaseSeconds: 3_600 } });
    await Promise.all(world().redis.map((server) => server.command("DEL", run.lockKey)));
    await until("it is back", 90_000, async () => {
      const values = await Promise.all(
        world().redis.map((server) => server.command("GET", run.lockKey)),
      );
      return values.filter((value) => value === run.lockValue).length > 2;
    });
    await until("the metric", 90_000, async () =>
      /lock_renewals_total\{outcome="regained"\} [1-9]/.test(await replica.metrics()),
    );
    expect(lab.seen.events(EventReason.LockLost)).toEqual([]);
    const left = await Promise.all(
      world().redis.map((server) => server.command("PTTL", run.lockKey)),
    );
    expect(Math.max(...left.map(Number))).toBeLessThanOrEqual(5_000);
  });
});
