/** Runs that people ask for. */
import { describe, expect, it } from "vitest";
import {
  BACKFILL_ANNOTATION,
  TRIGGER_ANNOTATION,
  TRIGGER_POLICY_ANNOTATION,
} from "../../src/api/names.ts";
import type { LockedCronJob, LockedCronJobSpec } from "../../src/api/types.ts";
import { decide } from "../../src/domain/decide/index.ts";
import { manualJobName } from "../../src/domain/manual.ts";
import {
  aJobView,
  aLedger,
  aLockedCronJob,
  aRun,
  aStartedRun,
  at,
  HOUR,
  MINUTE,
  NOON,
} from "../builders/objects.ts";
import { check } from "../builders/decisions.ts";
import { aSnapshot, present } from "../builders/snapshot.ts";

type Snapshot = Parameters<typeof aSnapshot>[0];
const asked = (
  annotations: Record<string, string>,
  spec: Partial<LockedCronJobSpec> = {},
): LockedCronJob => aLockedCronJob(spec, { annotations });
/** Nothing is due. */
const idle: Snapshot = { now: NOON + MINUTE, ledger: present(aLedger({ lastTick: NOON })) };
/** Nothing is due, and the run of noon is active. */
const active: Snapshot = {
  ...idle,
  ledger: present(aLedger({ lastTick: NOON, runs: [aStartedRun()] })),
  jobs: [aJobView({ hasLaunchFinalizer: false })],
};

describe("a trigger", () => {
  const owner = asked({ [TRIGGER_ANNOTATION]: "t1" });
  const launched = {
    do: "launch" as const,
    tick: NOON + MINUTE,
    reason: "Triggered" as const,
    manual: { id: "t1", kind: "trigger" as const },
  };
  check([
    ["starts a run now", { ...idle, owner }, { ...launched, beside: false }],
    [
      "that was carried out does nothing",
      {
        ...idle,
        owner,
        ledger: present(aLedger({ lastTick: NOON, triggers: ["t0", "t1", "t2"] })),
      },
      { do: "nothing", reason: "NotDue" },
    ],
    [
      "is left to the first in line for a while",
      { ...idle, owner, rank: 2, askedForMs: () => 4_000 },
      { do: "nothing", at: NOON + MINUTE + 2_000 },
    ],
    [
      "is not left to one that cannot act",
      { ...idle, owner, rank: 2, askedForMs: () => 6_000 },
      launched,
    ],
    [
      "works while it is suspended",
      { ...idle, owner: asked({ [TRIGGER_ANNOTATION]: "t1" }, { suspend: true }) },
      launched,
    ],
    ["waits while a run is active", { ...active, owner }, { do: "nothing", reason: "NotDue" }],
    [
      "does not, where runs may overlap",
      { ...active, owner: asked({ [TRIGGER_ANNOTATION]: "t1" }, { concurrencyPolicy: "Allow" }) },
      { ...launched, beside: true },
    ],
    [
      "does not, when it overrides the policy",
      {
        ...active,
        owner: asked({ [TRIGGER_ANNOTATION]: "t1", [TRIGGER_POLICY_ANNOTATION]: "Override" }),
      },
      { ...launched, beside: true },
    ],
    [
      "ends the run that is active, where the policy is Replace",
      { ...active, owner: asked({ [TRIGGER_ANNOTATION]: "t1" }, { concurrencyPolicy: "Replace" }) },
      { do: "stop", reason: "Replaced" },
    ],
    [
      "goes before a tick that is due",
      { owner },
      { do: "launch", manual: { id: "t1", kind: "trigger" } },
    ],
    [
      "with a policy that there is not is named, and keeps no tick from running",
      {
        owner: asked({ [TRIGGER_ANNOTATION]: "t1", [TRIGGER_POLICY_ANNOTATION]: "Now" }),
      },
      { do: "launch", tick: NOON, reason: "Due" },
    ],
    [
      "with a policy that there is not is named",
      {
        ...idle,
        owner: asked({ [TRIGGER_ANNOTATION]: "t1", [TRIGGER_POLICY_ANNOTATION]: "Now" }),
      },
      {
        do: "nothing",
        event: expect.objectContaining({
          type: "Warning",
          reason: "InvalidAnnotation",
          message: 'annotation lockedcron.io/trigger-policy "Now": write Obey or Override',
        }) as never,
      },
    ],
  ]);

  it("that was refused is tried again for as long as it takes", () => {
    const manual = { id: "t1", kind: "trigger" as const };
    const refusal = { reason: "Forbidden", message: "quota", retryAt: NOON, count: 3 };
    const run = aRun({ manual, refusal, attempts: [] });
    const decision = decide(
      aSnapshot({
        now: NOON + 5 * HOUR,
        owner: aLockedCronJob({ startingDeadlineSeconds: 10 }),
        ledger: present(aLedger({ lastTick: NOON + 5 * HOUR, runs: [run] })),
      }),
    );
    expect(decision).toMatchObject({ do: "takeOver", reason: "RetryAfterRefusal" });
  });
});

describe("a backfill", () => {
  const range = (fields: object = {}): Record<string, string> => ({
    [BACKFILL_ANNOTATION]: JSON.stringify({
      id: "b1",
      from: at(NOON - 5 * HOUR),
      to: at(NOON - 3 * HOUR),
      ...fields,
    }),
  });
  const manual = { id: "b1", kind: "backfill" as const };
  const done = (cursor: number, id = "b1"): Snapshot => ({
    ledger: present(aLedger({ lastTick: NOON, backfill: { id, cursor } })),
  });
  check([
    [
      "launches the first tick of its range, both ends included",
      { ...idle, owner: asked(range()) },
      { do: "launch", tick: NOON - 5 * HOUR, manual, beside: false, reason: "Backfill" },
    ],
    [
      "goes on where it was",
      { ...idle, owner: asked(range()), ...done(NOON - 4 * HOUR) },
      { do: "launch", tick: NOON - 3 * HOUR, manual },
    ],
    [
      "ends with its range",
      { ...idle, owner: asked(range()), ...done(NOON - 3 * HOUR) },
      { do: "nothing", reason: "NotDue" },
    ],
    [
      "with another id begins anew",
      { ...idle, owner: asked(range()), ...done(NOON - 3 * HOUR, "b0") },
      { do: "launch", tick: NOON - 5 * HOUR },
    ],
    [
      "leaves alone the ticks that are still to be decided",
      {
        ...idle,
        owner: asked(range({ from: at(NOON + HOUR), to: at(NOON + 9 * HOUR) })),
      },
      { do: "nothing", reason: "NotDue" },
    ],
    ["lets ticks that are due go first", { owner: asked(range()) }, { do: "launch", tick: NOON }],
    ["waits while a run is active", { ...active, owner: asked(range()) }, { do: "nothing" }],
    [
      "does not with policy Allow",
      { ...active, owner: asked(range({ policy: "Allow" })) },
      { do: "launch", tick: NOON - 5 * HOUR, beside: true },
    ],
    [
      "works while it is suspended",
      {
        ...idle,
        owner: asked(range(), { suspend: true }),
        ledger: present(aLedger({ lastTick: NOON, suspended: true })),
      },
      { do: "launch", tick: NOON - 5 * HOUR },
    ],
    [
      "is left to the first in line for a while",
      { ...idle, owner: asked(range()), rank: 1, askedForMs: () => 2_999 },
      { do: "nothing", at: NOON + MINUTE + 1 },
    ],
    [
      "is not left to one that cannot act",
      { ...idle, owner: asked(range()), rank: 1, askedForMs: () => 3_000 },
      { do: "launch", tick: NOON - 5 * HOUR },
    ],
  ]);

  it.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["no id", JSON.stringify({ from: at(NOON), to: at(NOON) })],
    ["no instant", JSON.stringify({ id: "b", from: "noon", to: at(NOON) })],
    [
      "a range that ends before it begins",
      range({ to: at(NOON - 9 * HOUR) })[BACKFILL_ANNOTATION]!,
    ],
    ["an unknown policy", range({ policy: "Queue" })[BACKFILL_ANNOTATION]!],
    ["an unknown field", range({ form: 1 })[BACKFILL_ANNOTATION]!],
  ])("that is %s is named, and the way out", (_, text) => {
    const owner = asked({ [BACKFILL_ANNOTATION]: text });
    const { event } = decide(aSnapshot({ ...idle, owner }));
    expect(event).toMatchObject({ type: "Warning", reason: "InvalidAnnotation" });
    expect(event?.message).toContain(`annotation lockedcron.io/backfill "${text}": write {"id"`);
  });
});

describe("a Job that runs and that the ledger does not know", () => {
  const stranger = aJobView({
    name: "report-x",
    uid: "x",
    runId: undefined,
    hasLaunchFinalizer: false,
  });
  const eventOf = (fields: Snapshot) => decide(aSnapshot({ ...idle, ...fields })).event;

  it("is told of, as native CronJob does", () => {
    expect(eventOf({ jobs: [stranger] })).toEqual({
      reason: "UnexpectedJob",
      type: "Warning",
      message: "Saw a job that the controller did not create or forgot: report-x",
      once: "unexpected x",
    });
  });

  it.each<[string, Snapshot]>([
    ["by others than the first in line", { jobs: [stranger], rank: 1 }],
    ["when it is over", { jobs: [{ ...stranger, outcome: "Complete" }] }],
    ["when it is being deleted", { jobs: [{ ...stranger, deleting: true }] }],
    ["when it is somebody else's", { jobs: [{ ...stranger, ownerUid: "other" }] }],
    [
      "when it is so new that the ledger may not have come yet",
      { jobs: [{ ...stranger, createdAt: NOON + MINUTE - 1_999 }] },
    ],
    ["when a run knows it", { ...active }],
  ])("but not %s", (_, fields) => {
    expect(eventOf(fields)).toBeUndefined();
  });
});

describe("the Job of a manual run", () => {
  const name = "n".repeat(52);
  const trigger = (id: string) => manualJobName(name, { id, kind: "trigger" }, NOON);
  const backfill = (id: string, tick: number) =>
    manualJobName(name, { id, kind: "backfill" }, tick);

  it("has a name that fits, and is the same on every replica and at every instant", () => {
    expect(trigger("t1")).toMatch(/^n{52}-m[0-9a-z]{9}$/);
    expect(trigger("t1")).toBe(manualJobName(name, { id: "t1", kind: "trigger" }, NOON + 1));
    expect(backfill("b1", NOON)).toMatch(/^n{52}-b[0-9a-z]{9}$/);
  });

  it("has a name of its own for each id and each tick", () => {
    const names = Array.from({ length: 2_000 }, (_, i) => [
      trigger(`t${i}`),
      backfill("b1", NOON + i * MINUTE),
    ]).flat();
    expect(new Set(names).size).toBe(4_000);
  });
});
