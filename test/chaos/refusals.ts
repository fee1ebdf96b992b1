/** What the API server or its controllers will not take: said, waited for, and made good when it is mended. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobName } from "../../src/api/names.ts";
import { ConditionType, EventReason, Reason } from "../../src/api/reasons.ts";
import type { Job } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { resourceType, type KubeObject } from "../../src/kube/index.ts";
import type { Replica } from "../harness/replica.ts";
import { conditionOf, manifest, useWorld, type Lab } from "./world.ts";

const quotas = resourceType<KubeObject & { spec: object }>("v1", "ResourceQuota", "resourcequotas");

const world = useWorld();
let lab: Lab;
let replica: Replica;

beforeAll(async () => {
  lab = await world().lab();
  replica = await lab.replica("a");
});
afterAll(async () => {
  expect(replica.alive()).toBe(true);
  await lab[Symbol.asyncDispose]();
});

const eventOf = (name: string, reason: string) => () =>
  lab.seen.events(reason).find(({ involvedObject }) => involvedObject.name === name);

async function condition(name: string, type: string, status: string, reason: string) {
  return lab.seen.until(`${type} ${status}, ${reason}`, () => {
    const seen = conditionOf(lab.seen.owner(name), type);
    return seen?.status === status && seen.reason === reason && seen;
  });
}

/** A Job of somebody else's under the name of a tick to come. */
async function putForeignJob(name: string, tick: number): Promise<string> {
  const { apiVersion, kind } = resources.jobs;
  const { spec } = manifest(lab.namespace, name).spec.jobTemplate;
  const foreign = jobName(name, tick, true);
  await world().client.create(resources.jobs, {
    apiVersion,
    kind,
    metadata: { name: foreign, namespace: lab.namespace },
    spec: { ...spec, suspend: true },
  } as unknown as Job);
  return foreign;
}

/** The instant that its ticks count from. */
const anchorOf = (name: string) => lab.seen.until("a ledger", () => lab.seen.ledger(name)?.anchor);

describe.concurrent("a Job of somebody else bears the name", () => {
  it("the tick waits, says so, and runs when the name is free", async () => {
    await lab.create("foreign", { schedule: "@every 12s" });
    const tick = (await anchorOf("foreign")) + 12_000;
    const foreign = await putForeignJob("foreign", tick);
    const { type } = await lab.seen.until("an event", eventOf("foreign", EventReason.ForeignJob));
    expect(type).toBe("Warning");
    const { message } = await condition("foreign", ConditionType.Ready, "False", Reason.ForeignJob);
    expect(message).toContain(foreign);
    await world().client.delete(resources.jobs, { namespace: lab.namespace, name: foreign });
    const [job] = await lab.seen.created("foreign", 1);
    expect(job).toMatchObject({ name: foreign, tick });
    await condition("foreign", ConditionType.Ready, "True", Reason.Scheduled);
    expect(await lab.violationsAtEnd("foreign")).toEqual([]);
  });

  it("the next tick takes over, and the one that could not run is recorded", async () => {
    await lab.create("superseded", { schedule: "@every 6s" });
    const tick = (await anchorOf("superseded")) + 6_000;
    await putForeignJob("superseded", tick);
    const [job] = await lab.seen.created("superseded", 1);
    expect(job?.tick).toBeGreaterThan(tick);
    expect(lab.seen.ledger("superseded")?.decisions).toContainEqual(
      expect.objectContaining({ tick, decision: "Missed", reason: Reason.Superseded }),
    );
    await lab.seen.until("an event", eventOf("superseded", EventReason.MissSchedule));
    expect(await lab.violationsAtEnd("superseded")).toEqual([]);
  });
});

describe.concurrent("a quota is used up", () => {
  it("the tick waits, says so, and runs when there is room", async () => {
    await using own = await world().lab();
    const { namespace } = own;
    await own.replica("b");
    await world().client.create(quotas, {
      apiVersion: quotas.apiVersion,
      kind: quotas.kind,
      metadata: { namespace, name: "none" },
      spec: { hard: { "count/jobs.batch": "0" } },
    });
    await own.create("quota", { schedule: "@every 12s" });
    const event = await own.seen.until(
      "an event",
      () => own.seen.events(EventReason.FailedCreate)[0],
    );
    expect(event.message).toMatch(/^Error creating job: .*quota/);
    await own.seen.until("a condition", () => {
      const ready = conditionOf(own.seen.owner("quota"), ConditionType.Ready);
      return ready?.status === "False" && ready.reason === Reason.CreateRefused;
    });
    expect(own.seen.jobs("quota")).toEqual([]);
    await world().client.delete(quotas, { namespace, name: "none" });
    const [job] = await own.seen.created("quota", 1);
    expect(job!.attempt).toBeGreaterThan(1);
    expect(await own.violationsAtEnd()).toEqual([]);
  });
});

describe.concurrent("a schedule that the CRD cannot judge", () => {
  it("an unknown zone: condition, event, no crash; and it runs when mended", async () => {
    await lab.create("zone", { timeZone: "Mars/Olympus_Mons" });
    await condition("zone", ConditionType.ScheduleValid, "False", Reason.UnknownTimeZone);
    await condition("zone", ConditionType.Ready, "False", Reason.UnknownTimeZone);
    const event = await lab.seen.until("an event", eventOf("zone", EventReason.UnknownTimeZone));
    expect(event).toMatchObject({ type: "Warning", message: expect.stringContaining("Mars") });
    await lab.patch("zone", { timeZone: "Europe/Berlin" });
    await lab.seen.created("zone", 1);
    await condition("zone", ConditionType.ScheduleValid, "True", Reason.ScheduleParsed);
    expect(await lab.violationsAtEnd("zone")).toEqual([]);
  });

  it("a duration out of range: the same", async () => {
    await lab.create("range", { schedule: "@every 3000000h" });
    await condition("range", ConditionType.ScheduleValid, "False", Reason.UnparseableSchedule);
    await lab.seen.until("an event", eventOf("range", EventReason.UnparseableSchedule));
    await lab.patch("range", { schedule: "@every 1s" });
    await lab.seen.created("range", 1);
    await condition("range", ConditionType.Ready, "True", Reason.Scheduled);
    expect(await lab.violationsAtEnd("range")).toEqual([]);
  });
});

describe.concurrent("a template that the API server will not take", () => {
  it("is named before its first tick, and all is well when it is mended", async () => {
    await lab.create("typo", {
      schedule: "0 0 1 1 *",
      job: {
        completionMode: "Indexed",
        completions: 1,
        backoffLimitPerIndex: 1,
        maxFailedIndexes: 9,
      },
    });
    const { message } = await condition(
      "typo",
      ConditionType.TemplateAccepted,
      "False",
      Reason.TemplateRejected,
    );
    expect(message).toMatch(/maxFailedIndexes.*must be less than or equal to/);
    await condition("typo", ConditionType.Ready, "False", Reason.TemplateRejected);
    await condition("typo", ConditionType.Stalled, "True", Reason.TemplateRejected);
    const event = await lab.seen.until("an event", eventOf("typo", EventReason.TemplateRejected));
    expect(event.type).toBe("Warning");
    expect(event.message).toContain(message);
    await lab.patch("typo", { jobTemplate: { spec: { maxFailedIndexes: 1 } } });
    await condition("typo", ConditionType.TemplateAccepted, "True", Reason.TemplateTaken);
    await condition("typo", ConditionType.Ready, "True", Reason.Scheduled);
    expect(conditionOf(lab.seen.owner("typo"), ConditionType.Stalled)).toBeUndefined();
    expect(lab.seen.jobs("typo")).toEqual([]);
  });
});
