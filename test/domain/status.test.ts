import { describe, expect, it } from "vitest";
import type { Reason } from "../../src/api/reasons.ts";
import type { LockedCronJob, LockedCronJobStatus } from "../../src/api/types.ts";
import { MAX_RUNS, type Ledger } from "../../src/domain/ledger.ts";
import { parseSpec, tzdataVersion } from "../../src/domain/schedule/index.ts";
import type { TemplateVerdict } from "../../src/domain/conditions.ts";
import { ledgerTroubleOf } from "../../src/domain/decide/index.ts";
import { buildStatus } from "../../src/domain/status.ts";
import {
  aDecision,
  aLedger,
  aLockedCronJob,
  aRun,
  aStartedRun,
  at,
  HOUR,
  NOON,
} from "../builders/objects.ts";

const UP = { quorum: true, message: "a majority is reachable" };
const DOWN = { quorum: false, message: "2 of 5 are reachable" };

function statusOf(o: {
  owner?: LockedCronJob;
  ledger?: Ledger | undefined;
  lock?: typeof UP;
  now?: number;
  template?: TemplateVerdict;
  ledgerTrouble?: { reason: Reason; message: string };
}): LockedCronJobStatus {
  const { owner = aLockedCronJob(), lock = UP, now = NOON + 1_000 } = o;
  return buildStatus({
    owner,
    lock,
    now,
    template: o.template,
    ledgerTrouble: o.ledgerTrouble,
    ledger: "ledger" in o ? o.ledger : aLedger({ lastTick: NOON }),
    schedule: parseSpec(owner.spec, "team/report"),
  });
}

const conditionOf = (status: LockedCronJobStatus, type: string) =>
  status.conditions?.find((c) => c.type === type);

describe("the schedule", () => {
  const report = (spec: Partial<LockedCronJob["spec"]>) => aLockedCronJob(spec);

  it("is shown with numbers for H, and only then", () => {
    const hashed = statusOf({ owner: report({ schedule: "H 3 * * *", hashSeed: "x" }) });
    expect(hashed.resolvedSchedules).toEqual([
      { schedule: expect.stringMatching(/^\d+ 3 \* \* \*$/), timeZone: "UTC" },
    ]);
    expect(statusOf({ owner: report({ schedule: "5 3 * * *" }) }).resolvedSchedules).toBe(
      undefined,
    );
  });

  it("of several is shown with their zones", () => {
    const { schedule: _, ...spec } = aLockedCronJob().spec;
    const owner = {
      ...aLockedCronJob(),
      spec: {
        ...spec,
        timeZone: "Europe/Berlin",
        schedules: [{ schedule: "0 9 * * *" }, { schedule: "0 9 * * *", timeZone: "Asia/Tokyo" }],
      },
    };
    expect(statusOf({ owner }).resolvedSchedules).toEqual([
      { schedule: "0 9 * * *", timeZone: "Europe/Berlin" },
      { schedule: "0 9 * * *", timeZone: "Asia/Tokyo" },
    ]);
  });

  it("that never fires is valid and says so", () => {
    const status = statusOf({ owner: report({ schedule: "0 0 31 2 *" }) });
    expect(conditionOf(status, "ScheduleValid")).toMatchObject({
      status: "True",
      reason: "NeverFires",
    });
    expect(conditionOf(status, "Ready")?.status).toBe("True");
  });

  it("tells which changes of clocks bear on its ticks", () => {
    const owner = report({ schedule: "30 2 * * *", timeZone: "Europe/Berlin" });
    expect(conditionOf(statusOf({ owner }), "ClockChangeSafe")).toMatchObject({
      status: "False",
      reason: "RunsAffected",
      message: expect.stringMatching(/^2026-03-29T01:00:00Z: clocks .*; 2026-10-25T01:00:00Z: /),
    });
    expect(conditionOf(statusOf({}), "ClockChangeSafe")).toMatchObject({
      status: "True",
      reason: "RunsUnaffected",
    });
    const unknown = statusOf({ owner: report({ timeZone: "Europe/Mars" }) });
    expect(conditionOf(unknown, "ClockChangeSafe")).toBeUndefined();
  });

  it("shows when ticks are due, with their jitter", () => {
    const owner = report({ schedule: "0 * * * *", jitterSeconds: 600 });
    const due = statusOf({ owner }).nextScheduleTimes ?? [];
    expect(due).toHaveLength(5);
    const late = due.map((time, i) => Date.parse(time) - (NOON + (i + 1) * HOUR));
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...late)).toBeLessThanOrEqual(600_000);
    expect(new Set(late).size).toBeGreaterThan(1);
  });
});

describe("the times", () => {
  it("say by which tz database they were found", () => {
    expect(statusOf({}).tzdata).toBe(tzdataVersion);
  });

  it("are those of the ledger, in whole seconds", () => {
    const ledger = aLedger({
      lastTick: NOON + HOUR,
      lastLaunched: NOON,
      lastSuccess: NOON + 1_999,
      lastFailure: NOON - HOUR,
      consecutiveFailures: 0,
      token: 4,
    });
    expect(statusOf({ ledger })).toMatchObject({
      lastScheduleTime: "2026-01-01T12:00:00Z",
      lastSuccessfulTime: "2026-01-01T12:00:01Z",
      lastFailureTime: "2026-01-01T11:00:00Z",
      consecutiveFailures: 0,
      token: 4,
    });
  });

  it("are left out when there was none", () => {
    const fields = Object.keys(statusOf({}));
    expect(fields).not.toContain("lastScheduleTime");
    expect(fields).not.toContain("lastSuccessfulTime");
    expect(fields).not.toContain("lastFailureTime");
    expect(fields).not.toContain("consecutiveFailures");
  });

  it.each<[situation: string, o: Parameters<typeof statusOf>[0], want: string[] | undefined]>([
    ["five come after the last tick", {}, [1, 2, 3, 4, 5].map((h) => at(NOON + h * HOUR))],
    [
      "a tick that is due but waits is not one of the next",
      { ledger: aLedger({ lastTick: NOON - HOUR }) },
      [1, 2, 3, 4, 5].map((h) => at(NOON + h * HOUR)),
    ],
    [
      "without a ledger they count from now",
      { ledger: undefined, now: NOON },
      [1, 2, 3, 4, 5].map((h) => at(NOON + h * HOUR)),
    ],
    ["none while it is suspended", { owner: aLockedCronJob({ suspend: true }) }, undefined],
    [
      "none of a schedule that cannot be read",
      { owner: aLockedCronJob({ schedule: "often" }) },
      undefined,
    ],
    [
      "none of one that never fires",
      { owner: aLockedCronJob({ schedule: "0 0 31 2 *" }) },
      undefined,
    ],
  ])("of the next ticks: %s", (_, o, want) => {
    const status = statusOf(o);
    expect(status.nextScheduleTimes).toEqual(want);
    expect(status.nextScheduleTime).toBe(want?.[0]);
  });
});

describe("the active runs", () => {
  it("are what excludes others: not those that have ended, nor a namesake's", () => {
    const runs = [
      aStartedRun({ runId: "r1", jobName: "j1", jobUID: "u1" }),
      aStartedRun({ runId: "r2", ended: true }),
      aRun({ runId: "r3", of: "owner-0" }),
      aRun({ runId: "r4", jobName: "j4", lockKey: "k4" }),
    ];
    const status = statusOf({ ledger: aLedger({ runs }) });
    const reference = { apiVersion: "batch/v1", kind: "Job", namespace: "team" };
    expect(status.active).toEqual([
      { ...reference, name: "j1", uid: "u1" },
      { ...reference, name: "j4" },
    ]);
    expect(status.activeCount).toBe(2);
    expect(status.lock).toEqual({ key: "k4", holder: "r4" });
  });

  it("hold no lock when there is none", () => {
    expect(statusOf({})).not.toHaveProperty("lock");
  });
});

it("decisions are told in the order in which they were taken, with long messages cut", () => {
  const decisions = [aDecision({ at: NOON + 12, message: "x".repeat(5_000) }), aDecision()];
  const told = statusOf({ ledger: aLedger({ decisions }) }).decisions;
  expect(told?.map((d) => d.time)).toEqual([
    "2026-01-01T12:00:00.012Z",
    "2026-01-01T12:00:00.000Z",
  ]);
  expect(told?.[0]?.message).toHaveLength(1_024);
});

it("a message is not cut through a character: the API server would store another one, to be written again and again", () => {
  const message = `${"x".repeat(1_023)}😀`;
  const { decisions, conditions } = statusOf({
    ledger: aLedger({ decisions: [aDecision({ message })] }),
    lock: { quorum: true, message },
  });
  expect(decisions?.[0]?.message.isWellFormed()).toBe(true);
  expect(conditions?.every((c) => c.message.isWellFormed())).toBe(true);
});

describe("conditions", () => {
  const refusal = { reason: "Forbidden", message: "exceeded quota", retryAt: NOON, count: 1 };
  type Case = [situation: string, o: Parameters<typeof statusOf>[0], want: object];
  it.each<Case>([
    ["all is well", {}, { status: "True", reason: "Scheduled" }],
    [
      "suspended is well",
      { owner: aLockedCronJob({ suspend: true }) },
      { status: "True", reason: "Suspended" },
    ],
    [
      "a schedule that cannot be read",
      { owner: aLockedCronJob({ schedule: "often" }) },
      { status: "False", reason: "UnparseableSchedule" },
    ],
    [
      "an unknown zone",
      { owner: aLockedCronJob({ timeZone: "Mars/Olympus" }) },
      { status: "False", reason: "UnknownTimeZone" },
    ],
    [
      "a refused Job, with the server's own words",
      { ledger: aLedger({ runs: [aRun({ refusal })] }) },
      { status: "False", reason: "CreateRefused", message: "exceeded quota" },
    ],
    [
      "a foreign Job",
      { ledger: aLedger({ runs: [aRun({ refusal: { ...refusal, reason: "ForeignJob" } })] }) },
      { status: "False", reason: "ForeignJob" },
    ],
    [
      "as many runs as there may be",
      { ledger: aLedger({ runs: Array.from({ length: MAX_RUNS }, () => aStartedRun()) }) },
      { status: "False", reason: "TooManyRuns" },
    ],
    [
      "no quorum, which it waits for",
      { lock: DOWN, owner: aLockedCronJob({ lock: { onQuorumLoss: "Wait" } }) },
      { status: "False", reason: "QuorumLost", message: DOWN.message },
    ],
    ["no quorum, without which it goes on", { lock: DOWN }, { status: "True" }],
  ])("Ready: %s", (_, o, want) => {
    expect(conditionOf(statusOf(o), "Ready")).toMatchObject(want);
  });

  const refused = { accepted: false, message: "exceeded quota" };
  it.each<
    [type: string, situation: string, o: Parameters<typeof statusOf>[0], want: object | undefined]
  >([
    [
      "TemplateAccepted",
      "a dry run that went through",
      { template: { accepted: true, message: "taken" } },
      { status: "True", reason: "TemplateTaken", message: "taken" },
    ],
    [
      "TemplateAccepted",
      "one that was refused",
      { template: refused },
      { status: "False", reason: "TemplateRejected", message: "exceeded quota" },
    ],
    ["TemplateAccepted", "no verdict yet", {}, undefined],
    ["Ready", "a template that would be refused", { template: refused }, { status: "False" }],
    ["Suspended", "suspended", { owner: aLockedCronJob({ suspend: true }) }, { status: "True" }],
    ["Suspended", "not suspended", {}, { status: "False", reason: "NotSuspended" }],
    [
      "Stalled",
      "a schedule that cannot be read",
      { owner: aLockedCronJob({ schedule: "often" }) },
      { status: "True", reason: "UnparseableSchedule" },
    ],
    ["Stalled", "a template that would be refused", { template: refused }, { status: "True" }],
    ["Stalled", "all is well", {}, undefined],
    [
      "Reconciling",
      "a refused Job that is tried again",
      { ledger: aLedger({ runs: [aRun({ refusal })] }) },
      { status: "True", reason: "CreateRefused" },
    ],
    [
      "Reconciling",
      "one that is stalled",
      { ledger: aLedger({ runs: [aRun({ refusal })] }), template: refused },
      undefined,
    ],
    ["Reconciling", "all is well", {}, undefined],
  ])("%s: %s", (type, _, o, want) => {
    const condition = conditionOf(statusOf(o), type);
    if (want === undefined) expect(condition).toBeUndefined();
    else expect(condition).toMatchObject(want);
  });

  it("LockBackendAvailable tells of the quorum, whatever the policy", () => {
    expect(conditionOf(statusOf({ lock: DOWN }), "LockBackendAvailable")).toMatchObject({
      status: "False",
      reason: "QuorumLost",
    });
  });

  it("ScheduleValid tells of the schedule alone", () => {
    const ledger = aLedger({ runs: [aRun({ refusal })] });
    expect(conditionOf(statusOf({ ledger, lock: DOWN }), "ScheduleValid")).toMatchObject({
      status: "True",
      reason: "ScheduleParsed",
    });
  });

  it("keep the time of their last change until they change", () => {
    const before = { ...aLockedCronJob(), status: statusOf({ now: NOON }) };
    const same = statusOf({ owner: before, now: NOON + HOUR });
    const changed = statusOf({ owner: before, now: NOON + HOUR, lock: DOWN });
    const time = (status: LockedCronJobStatus) =>
      conditionOf(status, "LockBackendAvailable")?.lastTransitionTime;
    expect(time(same)).toBe(at(NOON));
    expect(time(changed)).toBe(at(NOON + HOUR));
  });

  it("are of the generation that was looked at", () => {
    const status = statusOf({ owner: aLockedCronJob({}, { generation: 6 }) });
    expect(status.observedGeneration).toBe(6);
    expect(status.conditions?.map((c) => c.observedGeneration)).toEqual([6, 6, 6, 6, 6]);
  });
});

it("is not ready while nobody can read the ledger, and says the way out", () => {
  const trouble = ledgerTroubleOf({ state: "orphan", why: "garbled", held: true });
  const status = statusOf({ ledger: undefined, ...(trouble && { ledgerTrouble: trouble }) });
  expect(conditionOf(status, "Ready")).toMatchObject({
    status: "False",
    reason: "LedgerUnreadable",
    message: expect.stringContaining("take the finalizer lockedcron.io/launch off the Lease"),
  });
  expect(ledgerTroubleOf({ state: "orphan", why: "garbled", held: false })).toBeUndefined();
});
