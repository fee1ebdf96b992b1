import type { LockedCronJob, LockedCronJobStatus } from "../api/types.ts";
import { conditions, cut, rfc3339, type StatusFacts } from "./conditions.ts";
import { ticksFrom } from "./decide/index.ts";
import { activeRuns, type Ledger, type Run } from "./ledger.ts";
import { tzdataVersion, type Schedule } from "./schedule/index.ts";

const NEXT_TIMES = 5;
/** What nothing but the ledger can tell. */
const OF_LEDGER = [
  "active",
  "activeCount",
  "token",
  "lastTrigger",
  "backfill",
  "lastScheduleTime",
  "lastSuccessfulTime",
  "lastFailureTime",
  "consecutiveFailures",
  "decisions",
  "lock",
] as const satisfies readonly (keyof LockedCronJobStatus)[];

/**
 * The status as a function of spec, ledger and calendar. It is a report: any replica would write the same, and losing it
 * loses nothing.
 */
export function buildStatus(o: StatusFacts): LockedCronJobStatus {
  const { owner, ledger } = o;
  const runs = ledger === undefined ? [] : activeRuns(ledger);
  const next = o.schedule.ok ? nextTimes(owner, o.schedule.schedule, ledger, o.now) : [];
  return {
    observedGeneration: owner.metadata.generation ?? 0,
    conditions: conditions(o, runs),
    ...(ledger === undefined ? toldBefore(owner) : happened(owner, ledger, runs)),
    ...(next[0] === undefined ? {} : { nextScheduleTime: next[0], nextScheduleTimes: next }),
    ...lockOf(runs, o.renewal),
    ...(o.schedule.ok ? resolved(owner, o.schedule.schedule) : {}),
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
  let tick: number | null = schedule.lastDue(from, now) ?? from;
  const times: string[] = [];
  while (times.length < NEXT_TIMES) {
    tick = schedule.next(tick);
    if (tick === null) break;
    times.push(rfc3339(schedule.dueAt(tick)));
  }
  return times;
}

/**
 * The ledger is not known yet (the watch has just begun, or it is made anew): what was told stands, for from it a lost
 * ledger is made.
 */
function toldBefore({ status = {} }: LockedCronJob): LockedCronJobStatus {
  return Object.fromEntries(
    OF_LEDGER.flatMap((field) => (status[field] === undefined ? [] : [[field, status[field]]])),
  );
}

function happened(owner: LockedCronJob, ledger: Ledger, runs: readonly Run[]): LockedCronJobStatus {
  return {
    active: runs.map((run) => activeReference(owner, run)),
    activeCount: runs.length,
    ...history(ledger),
  };
}

/** Only where the spec does not say it itself. */
function resolved({ spec }: LockedCronJob, schedule: Schedule): LockedCronJobStatus {
  const plain = schedule.resolved.every((one) => one.schedule === spec.schedule);
  return plain ? {} : { resolvedSchedules: [...schedule.resolved] };
}

function history(ledger: Ledger): LockedCronJobStatus {
  return {
    token: ledger.token,
    ...asked(ledger),
    ...(ledger.lastLaunched === undefined
      ? {}
      : { lastScheduleTime: rfc3339(ledger.lastLaunched) }),
    ...(ledger.lastSuccess === undefined
      ? {}
      : { lastSuccessfulTime: rfc3339(ledger.lastSuccess) }),
    ...(ledger.lastFailure === undefined ? {} : { lastFailureTime: rfc3339(ledger.lastFailure) }),
    ...(ledger.consecutiveFailures === undefined
      ? {}
      : { consecutiveFailures: ledger.consecutiveFailures }),
    decisions: ledger.decisions.map((d) => ({
      time: new Date(d.at).toISOString(),
      tick: rfc3339(d.tick),
      decision: d.decision,
      reason: d.reason,
      message: cut(d.message),
      replica: d.replica,
    })),
  };
}

function asked({ triggers, backfill }: Ledger): LockedCronJobStatus {
  const lastTrigger = triggers?.at(-1);
  return {
    ...(lastTrigger === undefined ? {} : { lastTrigger }),
    ...(backfill === undefined
      ? {}
      : { backfill: { id: backfill.id, cursor: rfc3339(backfill.cursor) } }),
  };
}

function lockOf(
  runs: readonly Run[],
  renewal: { by: string; validUntil?: number } | undefined,
): LockedCronJobStatus {
  const newest = runs.at(-1);
  if (newest === undefined) return {};
  const { lockKey, runId, lock } = newest;
  const { validUntil, by } = renewal ?? {};
  return {
    lock: {
      key: lockKey,
      holder: runId,
      ...(lock?.mutexes === undefined ? {} : { mutexes: lock.mutexes }),
      ...(validUntil === undefined ? {} : { validUntil: rfc3339(validUntil) }),
      ...(by === undefined ? {} : { renewedBy: by }),
    },
  };
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
