/**
 * A replica stands still in the middle of a launch for as long as it takes the others to finish it, then goes on as if
 * nothing had been. Jobs want to be gone as soon as they are done (ttlSecondsAfterFinished: 0): only the finalizer keeps
 * the one that a late POST has to meet.
 */
import { describe, expect, it } from "vitest";
import type { StepFault } from "../harness/faults.ts";
import type { Replica } from "../harness/replica.ts";
import { FINISHES_AT_ONCE, hasLaunchFinalizer, nameFor, useWorld, type Lab } from "./world.ts";
import type { CreatedJob } from "./ticks.ts";

const job = { ...FINISHES_AT_ONCE, ttlSecondsAfterFinished: 0 };

const world = useWorld();

const stops = (after: StepFault["after"]) => ({ steps: [{ after, do: "stop" as const }] });

async function stands(replica: Replica): Promise<void> {
  await replica.line("stands still", ({ event }) => event === "Fault");
}

/** The Job of the tick that the replica has claimed: done, wanted gone, and still there. */
async function keptBack(lab: Lab, name: string, claimer: Replica): Promise<CreatedJob> {
  const job = await lab.seen.until(
    "another one launches the tick and the TTL wants it gone",
    () => {
      const run = lab.seen
        .ledger(name)
        ?.runs.find(({ attempts }) => attempts[0]?.by.startsWith(`${claimer.name}/`));
      return lab.seen
        .jobs(name)
        .find(({ runId, object }) => runId === run?.runId && object.metadata.deletionTimestamp);
    },
  );
  const there = await lab.job(job.name);
  expect(there?.metadata.uid).toBe(job.uid);
  expect(hasLaunchFinalizer(there)).toBe(true);
  return job;
}

/** Nobody is kept from the next tick meanwhile. */
async function nextTick(lab: Lab, name: string, { tick }: CreatedJob): Promise<void> {
  await lab.seen.until("the next tick", () => lab.seen.jobs(name).some((job) => job.tick > tick));
}

async function endsWithoutJobs(lab: Lab, name: string): Promise<void> {
  await lab.patch(name, { suspend: true });
  await lab.seen.settled(name);
  await lab.seen.until("every Job is gone", () =>
    lab.seen.jobs(name).every(({ deletedAt }) => deletedAt !== undefined),
  );
}

describe.concurrent("a replica stands still after its claim", () => {
  it("and its late POST meets the Job that another one made", async () => {
    await using lab = await world().lab();
    const [victim] = await Promise.all([
      lab.replica("victim", { faults: stops("claimed") }),
      lab.replica("other"),
    ]);
    const name = nameFor(lab.namespace, "job", ["victim", "other"]);
    await lab.create(name, { job });
    await stands(victim);
    const kept = await keptBack(lab, name, victim);
    await nextTick(lab, name, kept);
    expect(kept.deletedAt).toBeUndefined();
    victim.resume();
    await victim.line("meets the Job", ({ outcome }) => outcome === "the job exists");
    await lab.seen.until("the Job goes", () => kept.deletedAt !== undefined);
    await endsWithoutJobs(lab, name);
    expect(lab.seen.violations(name)).toEqual([]);
    expect(await victim.stop()).toBe(0);
  });

  it("and so does the one that took over: the third one's Job is met by both", async () => {
    await using lab = await world().lab();
    const [first, second] = await Promise.all([
      lab.replica("first", { faults: stops("claimed") }),
      lab.replica("second", { faults: stops("claimed") }),
    ]);
    const name = nameFor(lab.namespace, "job", ["first", "second", "third"]);
    await lab.create(name, { job });
    await stands(first);
    await stands(second);
    await lab.replica("third");
    const claimer = lab.seen.ledger(name)?.runs[0]?.attempts[0]?.by.startsWith("first/");
    const kept = await keptBack(lab, name, claimer === true ? first : second);
    expect(kept.attempt).toBeGreaterThanOrEqual(3);
    await nextTick(lab, name, kept);
    for (const replica of [second, first]) {
      expect(kept.deletedAt).toBeUndefined();
      replica.resume();
      await replica.line("meets the Job", ({ outcome }) => outcome === "the job exists");
    }
    await endsWithoutJobs(lab, name);
    expect(lab.seen.violations(name)).toEqual([]);
  });
});

describe.concurrent("a replica stands still", () => {
  it("after its election, and loses the lock: its claim meets a ledger that moved on", async () => {
    await using lab = await world().lab();
    // It will still think that it holds the lock: only the compare-and-set is left to stop it.
    const [victim] = await Promise.all([
      lab.replica("victim", { faults: stops("elected"), flags: ["--election-lease-ms=60000"] }),
      lab.replica("other"),
    ]);
    const name = nameFor(lab.namespace, "job", ["victim", "other"]);
    await lab.create(name, { job });
    await stands(victim);
    await Promise.all(
      world().redis.map(async ({ command }) => {
        const keys = (await command("KEYS", `*${lab.key(name)}*`)) as string[];
        if (keys.length > 0) await command("DEL", ...(keys as [string]));
      }),
    );
    await lab.seen.created(name, 2);
    victim.resume();
    await victim.line("is too late", ({ outcome }) => outcome === "somebody else was first");
    await endsWithoutJobs(lab, name);
    expect(lab.seen.violations(name)).toEqual([]);
    expect(await victim.stop()).toBe(0);
  });

  it.each(["elected", "created", "started", "finalizerDropped"] as const)(
    "after %s, wakes up, and changes nothing",
    async (after) => {
      await using lab = await world().lab();
      const [victim] = await Promise.all([
        lab.replica("victim", { faults: stops(after) }),
        lab.replica("other"),
      ]);
      const name = nameFor(lab.namespace, "job", ["victim", "other"]);
      await lab.create(name, { job });
      await stands(victim);
      await lab.seen.created(name, 3);
      victim.resume();
      await lab.seen.created(name, 5);
      await endsWithoutJobs(lab, name);
      expect(lab.seen.violations(name)).toEqual([]);
      expect(await victim.stop()).toBe(0);
    },
  );
});
