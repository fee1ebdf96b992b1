/**
 * The conditions of a LockedCronJob, by the rules of kstatus: Ready is the sum; Stalled and Reconciling are there only while
 * they are true, so that `kubectl wait`, Argo CD and Flux judge it without knowing its kind.
 */
import { ConditionType, Reason } from "../api/reasons.ts";
import type { Condition, LockedCronJob } from "../api/types.ts";
import { MAX_RUNS, type Ledger, type Run } from "./ledger.ts";
import type { Mutexes } from "./lock-terms.ts";
import { describeClockChange, type ParseScheduleResult, type Schedule } from "./schedule/index.ts";

/** What the lock backend says of itself. */
export interface LockBackend {
  quorum: boolean;
  message: string;
}

/** Whether the API server would take the Job that the template renders. */
export interface TemplateVerdict {
  accepted: boolean;
  message: string;
}

/** Messages are cut here; the API server allows 32,768. */
const MAX_MESSAGE = 1_024;

/** Half a character at the end is what the API server would make of it; else the status would never be as it is wanted. */
export function cut(message: string): string {
  return message.slice(0, MAX_MESSAGE).toWellFormed();
}

/** What the status is made from. */
export interface StatusFacts {
  owner: LockedCronJob;
  schedule: ParseScheduleResult;
  ledger: Ledger | undefined;
  /** Why there is no ledger to go by. */
  ledgerTrouble?: { reason: Reason; message: string } | undefined;
  lock: LockBackend;
  /** undefined while it is not known. */
  template?: TemplateVerdict | undefined;
  /** Default: this process's. */
  tzdata?: string | undefined;
  /** Absent: it names none. */
  mutexes?: Mutexes;
  /** The replica that is to renew the locks, and until when they stay if it does not, ms. */
  renewal?: { by: string; validUntil?: number };
  now: number;
}

interface Verdict {
  ok: boolean;
  reason: Reason;
  message: string;
}

export function conditions(o: StatusFacts, runs: readonly Run[]): Condition[] {
  const schedule: Verdict = o.schedule.ok
    ? valid(o.schedule.schedule, o.now)
    : { ok: false, reason: o.schedule.reason, message: o.schedule.message };
  const lock: Verdict = {
    ok: o.lock.quorum,
    reason: o.lock.quorum ? Reason.QuorumReachable : Reason.QuorumLost,
    message: o.lock.message,
  };
  const template = templateOf(o);
  const refusal = refusalOf(runs);
  const mutexes = mutexVerdict(o.mutexes, runs);
  // A busy mutex is nothing to mend; one that can never be had is.
  const hopeless = mutexes !== undefined && HOPELESS.includes(mutexes.reason) ? mutexes : undefined;
  const stalled = [schedule, template, hopeless].find((v) => v?.ok === false);
  const trouble = o.ledgerTrouble === undefined ? undefined : { ok: false, ...o.ledgerTrouble };
  const ready = trouble ?? refusal ?? stalled ?? waiting(o, lock, runs) ?? goesOn(o);
  return [
    conditionOf(o, ConditionType.Ready, ready),
    conditionOf(o, ConditionType.ScheduleValid, schedule),
    ...(template === undefined ? [] : [conditionOf(o, ConditionType.TemplateAccepted, template)]),
    ...(o.schedule.ok
      ? [conditionOf(o, ConditionType.ClockChangeSafe, clockChanges(o.schedule.schedule, o.now))]
      : []),
    conditionOf(o, ConditionType.LockBackendAvailable, lock),
    ...(mutexes === undefined ? [] : [conditionOf(o, ConditionType.MutexesAvailable, mutexes)]),
    conditionOf(o, ConditionType.Suspended, suspended(o)),
    ...(stalled === undefined
      ? []
      : [conditionOf(o, ConditionType.Stalled, { ...stalled, ok: true })]),
    ...(stalled !== undefined || refusal === undefined
      ? []
      : [conditionOf(o, ConditionType.Reconciling, { ...refusal, ok: true })]),
  ];
}

function conditionOf(o: StatusFacts, type: ConditionType, v: Verdict): Condition {
  const status = v.ok ? "True" : "False";
  const old = o.owner.status?.conditions?.find((c) => c.type === type);
  return {
    type,
    status,
    reason: v.reason,
    message: cut(v.message),
    observedGeneration: o.owner.metadata.generation ?? 0,
    lastTransitionTime: old?.status === status ? old.lastTransitionTime : rfc3339(o.now),
  };
}

function valid(schedule: Schedule, now: number): Verdict {
  return schedule.next(now) === null
    ? {
        ok: true,
        reason: Reason.NeverFires,
        message: "the schedule is valid, but has no tick in the coming five years",
      }
    : { ok: true, reason: Reason.ScheduleParsed, message: "the schedule is valid" };
}

function clockChanges(schedule: Schedule, now: number): Verdict {
  const changes = schedule.clockChanges(now);
  return changes.length === 0
    ? {
        ok: true,
        reason: Reason.RunsUnaffected,
        message: "each time of the schedule runs once in the coming year",
      }
    : {
        ok: false,
        reason: Reason.RunsAffected,
        message: changes.map(describeClockChange).join("; "),
      };
}

function templateOf({ template }: StatusFacts): Verdict | undefined {
  if (template === undefined) return undefined;
  const { accepted, message } = template;
  const reason = accepted ? Reason.TemplateTaken : Reason.TemplateRejected;
  return { ok: accepted, reason, message };
}

const HOPELESS: readonly Reason[] = [Reason.MutexNotAllowed, Reason.MutexClash];

/** What the oldest waiting run waits for; undefined without mutexes. */
function mutexVerdict(mutexes: Mutexes | undefined, runs: readonly Run[]): Verdict | undefined {
  const on = runs.find((run) => run.waiting?.on !== undefined)?.waiting?.on;
  if (mutexes?.ok === false) return mutexes;
  if (on !== undefined) return { ok: false, reason: on.reason as Reason, message: on.message };
  if (mutexes === undefined || mutexes.mutexes.length === 0) return undefined;
  return { ok: true, reason: Reason.MutexesFree, message: "no tick waits for a mutex" };
}

function suspended({ owner }: StatusFacts): Verdict {
  return owner.spec.suspend === true
    ? { ok: true, reason: Reason.Suspended, message: "no tick is launched" }
    : { ok: false, reason: Reason.NotSuspended, message: "ticks are launched as scheduled" };
}

/** A Job could not be created; it is tried again. */
function refusalOf(runs: readonly Run[]): Verdict | undefined {
  const refused = runs.find((r) => r.refusal !== undefined)?.refusal;
  if (refused === undefined) return undefined;
  const foreign = refused.reason === Reason.ForeignJob;
  return {
    ok: false,
    reason: foreign ? Reason.ForeignJob : Reason.CreateRefused,
    message: refused.message,
  };
}

function waiting({ owner }: StatusFacts, lock: Verdict, runs: readonly Run[]): Verdict | undefined {
  if (runs.length >= MAX_RUNS) {
    const message = `${runs.length} Jobs are active, the most that one LockedCronJob may have: ticks wait`;
    return { ok: false, reason: Reason.TooManyRuns, message };
  }
  return !lock.ok && owner.spec.lock?.onQuorumLoss === "Wait" ? lock : undefined;
}

function goesOn({ owner }: StatusFacts): Verdict {
  return owner.spec.suspend === true
    ? { ok: true, reason: Reason.Suspended, message: "suspended: no tick is launched" }
    : { ok: true, reason: Reason.Scheduled, message: "ticks are launched as scheduled" };
}

/** Whole seconds, as metav1.Time is. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
