/** Runs that people ask for, with two replicas and the real Job controller. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  BACKFILL_ANNOTATION,
  INSTANTIATE_ANNOTATION,
  SCHEDULED_TIMESTAMP_ANNOTATION,
  TRIGGER_ANNOTATION,
  TRIGGER_POLICY_ANNOTATION,
} from "../../src/api/names.ts";
import { EventReason } from "../../src/api/reasons.ts";
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

const NEVER = "0 0 31 2 *";

async function annotate(name: string, annotations: Record<string, string>): Promise<void> {
  await world().client.patch(
    resources.lockedCronJobs,
    { namespace: lab.namespace, name },
    { type: "merge", body: { metadata: { annotations } } },
  );
}

describe.concurrent("a trigger", () => {
  it("starts one run for each id, also while it is suspended, and moves no tick", async () => {
    await lab.create("asked", { schedule: NEVER, suspend: true });
    await annotate("asked", { [TRIGGER_ANNOTATION]: "one" });
    const [first] = await lab.seen.created("asked", 1);
    expect(first!.object.metadata.annotations).toMatchObject({
      [INSTANTIATE_ANNOTATION]: "manual",
    });
    expect(first!.object.metadata.annotations).not.toHaveProperty([SCHEDULED_TIMESTAMP_ANNOTATION]);
    await lab.seen.until("told", () => lab.seen.owner("asked")?.status?.lastTrigger === "one");
    // Written again it is the same request; an edit makes the replicas look.
    await lab.patch("asked", { successfulJobsHistoryLimit: 9 });
    await annotate("asked", { [TRIGGER_ANNOTATION]: "two" });
    const jobs = await lab.seen.created("asked", 2);
    expect(jobs.map((job) => job.manual)).toEqual(["trigger/one", "trigger/two"]);
    expect(lab.seen.owner("asked")?.status).not.toHaveProperty("lastScheduleTime");
    expect(lab.seen.ledger("asked")).toMatchObject({ lastTick: 0, missed: 0 });
    expect(await lab.violationsAtEnd("asked")).toEqual([]);
    expect(lab.seen.jobs("asked")).toHaveLength(2);
  });

  it("waits for the run that is active, or overrides the policy", async () => {
    await lab.create("busy", { schedule: NEVER, job: NEVER_FINISHES });
    await annotate("busy", { [TRIGGER_ANNOTATION]: "one" });
    const [first] = await lab.seen.created("busy", 1);
    await annotate("busy", {
      [TRIGGER_ANNOTATION]: "two",
      [TRIGGER_POLICY_ANNOTATION]: "Override",
    });
    await lab.seen.created("busy", 2);
    await annotate("busy", { [TRIGGER_ANNOTATION]: "three", [TRIGGER_POLICY_ANNOTATION]: "Obey" });
    await lab.seen.settled("busy");
    const both = lab.seen.jobs("busy");
    expect(both).toHaveLength(2);
    for (const { name } of both) {
      await world().client.delete(resources.jobs, { namespace: lab.namespace, name });
    }
    const [, , third] = await lab.seen.created("busy", 3);
    expect(third!.manual).toBe("trigger/three");
    expect(third!.token).toBeGreaterThan(first!.token);
  });

  it("that cannot be read is named", async () => {
    await lab.create("garbled", { schedule: NEVER });
    await annotate("garbled", { [BACKFILL_ANNOTATION]: "yesterday" });
    const event = await lab.seen.until("an event", () =>
      lab.seen
        .events(EventReason.InvalidAnnotation)
        .find(({ involvedObject }) => involvedObject.name === "garbled"),
    );
    expect(event.message).toContain('"yesterday": write {"id"');
  });
});

describe.concurrent("a backfill", () => {
  it("runs each tick of its range again, once, in order, one after the other", async () => {
    await lab.create("again", { schedule: "0 * * * *" });
    const hours = [9, 10, 11, 12].map((hour) => Date.UTC(2026, 0, 1, hour));
    await annotate("again", {
      [BACKFILL_ANNOTATION]: JSON.stringify({
        id: "january",
        from: "2026-01-01T09:00:00Z",
        to: "2026-01-01T12:59:00Z",
      }),
    });
    await lab.seen.created("again", 4);
    await lab.seen.until(
      "the status says so",
      () => lab.seen.owner("again")?.status?.backfill?.cursor === "2026-01-01T12:00:00Z",
    );
    expect(await lab.violationsAtEnd("again")).toEqual([]);
    const jobs = lab.seen.jobs("again").filter((job) => job.manual === "backfill/january");
    expect(jobs.map((job) => job.tick)).toEqual(hours);
    expect(jobs.map((job) => job.object.metadata.annotations)).toEqual(
      jobs.map((job) =>
        expect.objectContaining({
          [SCHEDULED_TIMESTAMP_ANNOTATION]: new Date(job.tick).toISOString().replace(".000", ""),
        }),
      ),
    );
  });
});
