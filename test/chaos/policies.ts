/** What the spec promises of ticks, with the real Job controller; and a replica that is asked to go. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NAME_LABEL } from "../../src/api/names.ts";
import { ConditionType, EventReason, Reason } from "../../src/api/reasons.ts";
import { resources } from "../../src/controller/caches.ts";
import { memberLeaseName } from "../../src/controller/member-lease.ts";
import { hasReason } from "../../src/kube/index.ts";
import { until } from "../cluster/proc.ts";
import { conditionOf, nameFor, NEVER_FINISHES, useWorld, type Lab } from "./world.ts";

const world = useWorld();
let lab: Lab;

beforeAll(async () => {
  lab = await world().lab();
  await lab.replica("a");
});
afterAll(async () => {
  await lab[Symbol.asyncDispose]();
});

/** What a kubelet says of pods that have done their work; the Job controller does the rest. */
async function succeed(job: string): Promise<void> {
  const pods = await until(`a pod of ${job}`, 90_000, async () => {
    const { items } = await world().client.list(resources.pods, {
      namespace: lab.namespace,
      labelSelector: `batch.kubernetes.io/job-name=${job}`,
    });
    return items.length > 0 && items;
  });
  for (const { metadata } of pods) {
    await world().client.patch(
      resources.pods,
      { namespace: lab.namespace, name: metadata.name },
      { type: "merge", body: { status: { phase: "Succeeded" } } },
      { subresource: "status" },
    );
  }
}

const eventsOf = (name: string, reason: string) =>
  lab.seen.events(reason).filter(({ involvedObject }) => involvedObject.name === name);

/**
 * Somebody edits the label of a Job by which it is watched; null takes it off. The other one stays: a Job without any label
 * gets those of its pods (defaulting of batch/v1).
 */
async function relabel(job: string, label: string | null): Promise<void> {
  await world().client.patch(
    resources.jobs,
    { namespace: lab.namespace, name: job },
    { type: "merge", body: { metadata: { labels: { [NAME_LABEL]: label, kept: "yes" } } } },
  );
}

describe.concurrent("a LockedCronJob", () => {
  it.each([null, "another"])("goes on though the label of its Job becomes %s", async (label) => {
    const name = `label-${label ?? "off"}`;
    await lab.create(name, { job: {} });
    const [first] = await lab.seen.created(name, 1);
    await lab.seen.until("its launch is complete", () => first!.releasedAt !== undefined);
    await relabel(first!.name, label);
    if (label === null) {
      await lab.seen.until("it is put back", () => eventsOf(name, EventReason.LabelRestored)[0]);
    }
    await succeed(first!.name);
    await lab.seen.created(name, 2);
    expect(await lab.violationsAtEnd(name)).toEqual([]);
  });

  it("with policy Forbid waits for the Job's end, then catches up the latest tick", async () => {
    await lab.create("forbid", { job: {} });
    const [first] = await lab.seen.created("forbid", 1);
    await lab.seen.until("three ticks that wait", () =>
      eventsOf("forbid", EventReason.JobAlreadyActive).some(({ count = 1 }) => count >= 3),
    );
    expect(lab.seen.jobs("forbid")).toHaveLength(1);
    await succeed(first!.name);
    const [, second] = await lab.seen.created("forbid", 2);
    const between = (second!.tick - first!.tick) / 1000 - 1;
    expect(between).toBeGreaterThanOrEqual(2);
    expect(lab.seen.missed("forbid")).toBe(between);
    expect(lab.seen.ledger("forbid")?.decisions).toContainEqual(
      expect.objectContaining({
        decision: "Missed",
        reason: Reason.Superseded,
        tick: second!.tick,
      }),
    );
    expect(await lab.violationsAtEnd("forbid")).toEqual([]);
  });

  it("records ticks that cannot start within startingDeadlineSeconds", async () => {
    await lab.create("deadline", {
      schedule: "@every 2s",
      startingDeadlineSeconds: 1,
      job: NEVER_FINISHES,
    });
    const [first] = await lab.seen.created("deadline", 1);
    await lab.seen.until(
      "two ticks are missed",
      () => (lab.seen.ledger("deadline")?.missed ?? 0) >= 2,
    );
    await lab.seen.until("an event says so", () =>
      eventsOf("deadline", EventReason.MissSchedule).some(({ type }) => type === "Warning"),
    );
    expect(lab.seen.ledger("deadline")?.decisions).toContainEqual(
      expect.objectContaining({ decision: "Missed", reason: Reason.TooLate }),
    );
    expect(lab.seen.jobs("deadline")).toHaveLength(1);
    await world().client.delete(resources.jobs, { namespace: lab.namespace, name: first!.name });
    await lab.seen.created("deadline", 2);
    expect(await lab.violationsAtEnd("deadline")).toEqual([]);
  });

  it("that is suspended launches nothing, and the latest tick when it is resumed", async () => {
    await lab.create("paused");
    await lab.seen.created("paused", 1);
    await lab.patch("paused", { suspend: true });
    await lab.seen.until(
      "the status says so",
      () => conditionOf(lab.seen.owner("paused"), ConditionType.Ready)?.reason === Reason.Suspended,
    );
    await lab.seen.settled("paused");
    const before = lab.seen.jobs("paused");
    // Another one with the same schedule shows that ticks go by.
    await lab.create("clock");
    await lab.seen.created("clock", 3);
    expect(lab.seen.jobs("paused")).toHaveLength(before.length);
    await lab.patch("paused", { suspend: false });
    const jobs = await lab.seen.created("paused", before.length + 1);
    const [last, resumed] = jobs.slice(-2);
    const between = (resumed!.tick - last!.tick) / 1000 - 1;
    expect(between).toBeGreaterThanOrEqual(2);
    expect(lab.seen.missed("paused")).toBeGreaterThanOrEqual(between);
    expect(await lab.violationsAtEnd("paused", "clock")).toEqual([]);
  });

  it("counts ticks anew when its schedule is edited", async () => {
    await lab.create("edited");
    await lab.seen.created("edited", 1);
    await lab.patch("edited", { schedule: "@every 2s" });
    const { anchor } = await lab.seen.until("the edit is in the ledger", () => {
      const ledger = lab.seen.ledger("edited");
      return ledger?.schedule.includes("@every 2s") === true && ledger;
    });
    const next = await lab.seen.until("a tick of the new schedule", () =>
      lab.seen.jobs("edited").find(({ tick }) => tick > anchor),
    );
    expect((next.tick - Math.floor(anchor / 1000) * 1000) % 2000).toBe(0);
    expect(await lab.violationsAtEnd("edited")).toEqual([]);
  });

  it.each([
    ["successful", "Complete", { successfulJobsHistoryLimit: 1 }],
    ["failed", "Failed", { failedJobsHistoryLimit: 1, job: { activeDeadlineSeconds: 1 } }],
  ] as const)("keeps as many %s Jobs as it is told to", async (name, outcome, spec) => {
    await lab.create(name, spec);
    await lab.seen.created(name, 4);
    await lab.patch(name, { suspend: true });
    const isLeft = () => lab.seen.jobs(name).filter((job) => job.deletedAt === undefined);
    await lab.seen.until("one is left", () => isLeft().length === 1);
    await lab.seen.until("the run has ended", () => lab.seen.ledger(name)?.runs.length === 0);
    const [kept] = isLeft();
    expect(kept).toBe(lab.seen.jobs(name).at(-1));
    expect(kept?.object.status?.conditions).toContainEqual(
      expect.objectContaining({ type: outcome, status: "True" }),
    );
    await lab.seen.until("an event", () => eventsOf(name, EventReason.SuccessfulDelete)[0]);
    expect(await lab.violationsAtEnd(name)).toEqual([]);
    const failed = outcome === "Failed" ? lab.seen.jobs(name).length : 0;
    const statusOf = () => lab.seen.owner(name)?.status ?? {};
    await lab.seen.until("all are counted", () => statusOf().consecutiveFailures === failed);
    const { lastSuccessfulTime, lastFailureTime } = statusOf();
    expect(outcome === "Failed" ? lastFailureTime : lastSuccessfulTime).toBeDefined();
    expect(outcome === "Failed" ? lastSuccessfulTime : lastFailureTime).toBeUndefined();
  });
});

describe.concurrent("a replica that gets SIGTERM", () => {
  it("finishes the launch it is in, gives its Lease up and ends with 0; the other goes on", async () => {
    await using own = await world().lab();
    const [leaving] = await Promise.all([
      own.replica("leaving", { faults: { steps: [{ after: "claimed", do: "hold" }] } }),
      own.replica("staying"),
    ]);
    const names = ["one", "two", "three"].map((prefix) =>
      nameFor(own.namespace, prefix, ["leaving", "staying"]),
    );
    await Promise.all(names.map((name) => own.create(name)));
    const { key } = await leaving.line("is in a launch", ({ event }) => event === "Fault");
    leaving.signal("SIGTERM");
    await leaving.line("goes", ({ event }) => event === "Stopping");
    leaving.signal("SIGUSR2");
    expect(await leaving.exited).toMatchObject({ code: 0 });
    expect(leaving.lines).toContainEqual(expect.objectContaining({ event: "Launched", key }));
    expect(leaving.lines).toContainEqual(
      expect.objectContaining({ event: "Stopped", handedOver: 0 }),
    );
    const lease = world().client.get(resources.leases, {
      namespace: own.namespace,
      name: memberLeaseName("leaving"),
    });
    await expect(lease).rejects.toSatisfy((error) => hasReason(error, "NotFound"));

    await Promise.all(names.map((name) => own.seen.created(name, own.seen.jobs(name).length + 2)));
    expect(await own.violationsAtEnd()).toEqual([]);
  });
});
