import { ConditionType, Reason } from "../api/reasons.ts";
import type { Condition, LockedCronJob, LockedCronJobStatus } from "../api/types.ts";
import { ticksFrom } from "./decide/index.ts";
import { activeRuns, MAX_RUNS, type Ledger, type Run } from "./ledger.ts";
import { tzdataVersion, type ParseScheduleResult, type Schedule } from "./schedule/index.ts";

/** What the lock backend says of itself. */
export interface LockBackend {
  quorum: boolean;
  message: string;
}

/** Messages of conditions are cut here; the API server allows 32,768. */
const MAX_MESSAGE = 1_024;
const NEXT_TIMES = 5;

/**
 * The status as a function of spec, ledger and calendar. It is a report: any replica would write the same, and losing it
 * loses nothing.
 */
export function buildStatus(o: {
  owner: LockedCronJob;
  schedule: ParseScheduleResult;
  ledger: Ledger | undefined;
  lock: LockBackend;
  /** Default: this process's. */
  tzdata?: string | undefined;
  now: number;
}): LockedCronJobStatus {
  const { owner, ledger } = o;
  const runs = ledger === undefined ? [] : activeRuns(ledger);
  const next = o.schedule.ok ? nextTimes(owner, o.schedule.schedule, ledger, o.now) : [];
  return {
    observedGeneration: owner.metadata.generation ?? 0,
    conditions: conditions(o, runs),
    active: runs.map((run) => activeReference(owner, run)),
    activeCount: runs.length,
    ...(ledger === undefined ? {} : history(ledger)),
    ...(next[0] === undefined ? {} : { nextScheduleTime: next[0], nextScheduleTimes: next }),
    ...lockOf(runs),
    tzdata: o.tzdata ?? tzdataVersion,
  };
}

function nextTimes(
  owner: LockedCronJob,
  schedule: Schedule,
  ledger: Ledger | undefined,
  now: number,
): string[] {
  if (owner.spec.suspend === true) return [];
  const from = ledger === undefined ? now : ticksFrom(ledger);
  let tick: number | null = schedule.lastFire(from, now) ?? from;
  const times: string[] = [];
  while (times.length < NEXT_TIMES) {
    tick = schedule.next(tick);
    if (tick === null) break;
    times.push(rfc3339(tick));
  }
  return times;
}

function history(ledger: Ledger): LockedCronJobStatus {
  return {
    token: ledger.token,
    ...(ledger.lastLaunched === undefined
      ? {}
      : { lastScheduleTime: rfc3339(ledger.lastLaunched) }),
    ...(ledger.lastSuccess === undefined
      ? {}
      : { lastSuccessfulTime: rfc3339(ledger.lastSuccess) }),
    ...(ledger.lastFailure === undefined ? {} : { lastFailureTime: rfc3339(ledger.lastFailure) }),
    decisions: ledger.decisions.map((d) => ({
      time: new Date(d.at).toISOString(),
      tick: rfc3339(d.tick),
      decision: d.decision,
      reason: d.reason,
      message: d.message.slice(0, MAX_MESSAGE),
      replica: d.replica,
    })),
  };
}

function lockOf(runs: readonly Run[]): LockedCronJobStatus {
  const newest = runs.at(-1);
  return newest === undefined ? {} : { lock: { key: newest.lockKey, holder: newest.runId } };
}

function activeReference(
  owner: LockedCronJob,
  run: Run,
): NonNullable<LockedCronJobStatus["active"]>[number] {
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    namespace: owner.metadata.namespace,
    name: run.jobName,
    ...(run.jobUID === undefined ? {} : { uid: run.jobUID }),
  };
}

interface Verdict {
  ok: boolean;
  reason: Reason;
  message: string;
}

function conditions(o: Parameters<typeof buildStatus>[0], runs: readonly Run[]): Condition[] {
  const scheduleValid: Verdict = o.schedule.ok
    ? { ok: true, reason: Reason.ScheduleParsed, message: "the schedule is valid" }
    : { ok: false, reason: o.schedule.reason, message: o.schedule.message };
  const lock: Verdict = {
    ok: o.lock.quorum,
    reason: o.lock.quorum ? Reason.QuorumReachable : Reason.QuorumLost,
    message: o.lock.message,
  };
  const condition = (type: ConditionType, v: Verdict): Condition => {
    const status = v.ok ? "True" : "False";
    const old = o.owner.status?.conditions?.find((c) => c.type === type);
    return {
      type,
      status,
      reason: v.reason,
      message: v.message.slice(0, MAX_MESSAGE),
      observedGeneration: o.owner.metadata.generation ?? 0,
      lastTransitionTime: old?.status === status ? old.lastTransitionTime : rfc3339(o.now),
    };
  };
  return [
    condition(ConditionType.Ready, ready(o.owner, scheduleValid, lock, runs)),
    condition(ConditionType.ScheduleValid, scheduleValid),
    condition(ConditionType.LockBackendAvailable, lock),
  ];
}

function ready(
  owner: LockedCronJob,
  schedule: Verdict,
  lock: Verdict,
  runs: readonly Run[],
): Verdict {
  const refused = runs.find((r) => r.refusal !== undefined)?.refusal;
  if (!schedule.ok) return schedule;
  if (refused !== undefined) {
    return {
      ok: false,
      reason: refused.reason === Reason.ForeignJob ? Reason.ForeignJob : Reason.CreateRefused,
      message: refused.message,
    };
  }
  if (runs.length >= MAX_RUNS) {
    const message = `${runs.length} Jobs are active, the most that one LockedCronJob may have: ticks wait`;
    return { ok: false, reason: Reason.TooManyRuns, message };
  }
  if (!lock.ok && owner.spec.lock?.onQuorumLoss === "Wait") return lock;
  return owner.spec.suspend === true
    ? { ok: true, reason: Reason.Suspended, message: "suspended: no tick is launched" }
    : { ok: true, reason: Reason.Scheduled, message: "ticks are launched as scheduled" };
}

/** Whole seconds, as metav1.Time is. */
function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
