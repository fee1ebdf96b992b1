/** concurrencyPolicy Replace, Skip and Queue, catchUp and onResume, with the real Job controller. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EventReason, Reason } from "../../src/api/reasons.ts";
import { resources } from "../../src/controller/caches.ts";
import { NEVER_FINISHES, useWorld, type Lab } from "./world.ts";

const world = useWorld();
let lab: Lab;

beforeAll(async () => {
  lab = await world().lab();
  await Promise.all([lab.replica("a"), lab.replica("b")]);
});
afterAll(async () => {
  await lab[Symbol.asyncDispose]();
});

const eventsOf = (name: string, reason: string) =>
  lab.seen.events(reason).filter(({ involvedObject }) => involvedObject.name === name);

/** How many ticks wait for the run that is active. */
const waiting = (name: string, count: number) =>
  lab.seen.until(`${count} ticks wait`, () =>
    eventsOf(name, EventReason.JobAlreadyActive).some(({ count: n = 1 }) => n >= count),
  );

const remove = (job: string) =>
  world().client.delete(resources.jobs, { namespace: lab.namespace, name: job });

describe.concurrent("concurrencyPolicy", () => {
  it("Replace ends the run that is active, and launches the tick when its pods are gone", async () => {
    await lab.create("replace", { schedule: "@every 3s", concurrencyPolicy: "Replace", job: {} });
    const [first, second] = await lab.seen.created("replace", 3);
    expect(first?.deletedAt).toBeLessThan(second!.createdAt);
    await lab.seen.until("an event", () => eventsOf("replace", EventReason.SuccessfulDelete)[0]);
    expect(lab.seen.ledger("replace")?.decisions).toContainEqual(
      expect.objectContaining({ decision: "Finished", reason: Reason.Replaced, tick: first!.tick }),
    );
    expect(eventsOf("replace", EventReason.MissingJob)).toEqual([]);
    await lab.patch("replace", { suspend: true });
    await remove(lab.seen.jobs("replace").at(-1)!.name);
    expect(await lab.violationsAtEnd("replace")).toEqual([]);
  });

  it("Skip drops the ticks that come due while a run is active, at once and for good", async () => {
    await lab.create("skip", { concurrencyPolicy: "Skip", job: NEVER_FINISHES });
    const [first] = await lab.seen.created("skip", 1);
    await lab.seen.until("three are skipped", () => (lab.seen.ledger("skip")?.missed ?? 0) >= 3);
    await lab.seen.until("an event", () => eventsOf("skip", EventReason.JobAlreadyActive)[0]);
    const { lastTick = 0 } = lab.seen.ledger("skip") ?? {};
    await remove(first!.name);
    const [, second] = await lab.seen.created("skip", 2);
    expect(second!.tick).toBeGreaterThan(lastTick);
    await lab.patch("skip", { suspend: true });
    await remove(second!.name);
    expect(await lab.violationsAtEnd("skip")).toEqual([]);
  });

  it("Queue launches every tick that has waited, in order", async () => {
    await lab.create("queue", { concurrencyPolicy: "Queue", job: NEVER_FINISHES });
    const [first] = await lab.seen.created("queue", 1);
    await waiting("queue", 3);
    await lab.patch("queue", {
      jobTemplate: { spec: { suspend: null, completions: 0, parallelism: 0 } },
    });
    await remove(first!.name);
    const jobs = await lab.seen.created("queue", 5);
    expect(jobs.map(({ tick }) => tick)).toEqual(jobs.map((_, i) => first!.tick + i * 1000));
    expect(await lab.violationsAtEnd("queue")).toEqual([]);
    expect(lab.seen.missed("queue")).toBe(0);
  });

  it("Queue gives up the oldest ticks beyond queueLimit", async () => {
    await lab.create("full", { concurrencyPolicy: "Queue", queueLimit: 2, job: NEVER_FINISHES });
    const [first] = await lab.seen.created("full", 1);
    await lab.seen.until("two are given up", () => (lab.seen.ledger("full")?.missed ?? 0) >= 2);
    expect(lab.seen.ledger("full")?.decisions).toContainEqual(
      expect.objectContaining({ decision: "Missed", reason: Reason.QueueFull }),
    );
    await lab.patch("full", { suspend: true });
    await remove(first!.name);
    expect(await lab.violationsAtEnd("full")).toEqual([]);
  });
});

describe.concurrent("after a suspension", () => {
  it("with onResume FromNow none of its ticks runs, and all are recorded", async () => {
    await lab.create("from-now", { onResume: "FromNow" });
    await lab.seen.created("from-now", 1);
    await lab.patch("from-now", { suspend: true });
    await lab.seen.until("it is marked", () => lab.seen.ledger("from-now")?.suspended === true);
    await lab.seen.settled("from-now");
    const last = lab.seen.jobs("from-now").at(-1)!;
    // Another one with the same schedule shows that ticks go by.
    await lab.create("passing");
    await lab.seen.created("passing", 4);
    await lab.patch("from-now", { suspend: false });
    const resumed = await lab.seen.until("the next tick", () =>
      lab.seen.jobs("from-now").find(({ tick }) => tick > last.tick),
    );
    const { anchor, decisions } = lab.seen.ledger("from-now")!;
    expect(resumed.tick).toBeGreaterThan(anchor);
    expect(decisions).toContainEqual(
      expect.objectContaining({ decision: "Missed", reason: Reason.Suspended }),
    );
    expect(await lab.violationsAtEnd("from-now", "passing")).toEqual([]);
  });

  it("with catchUp All every one of its ticks runs, in order", async () => {
    await lab.create("all", { catchUp: { policy: "All" } });
    await lab.seen.created("all", 1);
    await lab.patch("all", { suspend: true });
    await lab.seen.settled("all");
    const before = lab.seen.jobs("all").length;
    await lab.create("passing-too");
    await lab.seen.created("passing-too", 4);
    await lab.patch("all", { suspend: false });
    const jobs = await lab.seen.created("all", before + 4);
    expect(jobs.map(({ tick }) => tick)).toEqual(jobs.map((_, i) => jobs[0]!.tick + i * 1000));
    expect(await lab.violationsAtEnd("all", "passing-too")).toEqual([]);
    expect(lab.seen.missed("all")).toBe(0);
  });
});
