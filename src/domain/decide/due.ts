/** What becomes of ticks that are due: which of them runs, which never will, and which waits for a run that is active. */
import { EventReason, Reason } from "../../api/reasons.ts";
import type { LockedCronJob, LockedCronJobSpec } from "../../api/types.ts";
import { activeRuns, MAX_RUNS, type Ledger, type Run } from "../ledger.ts";
import type { Schedule } from "../schedule/index.ts";
import { deadlineOf } from "./runs.ts";
import { nothing, type Decision, type Snapshot, type Wait } from "./types.ts";

/** Missed ticks are counted up to here; beyond it the number says "at least". */
export const MAX_COUNTED = 10_000;
/** Ticks that wait in a queue or are caught up, when the spec does not say; the CRD's defaults are the same. */
const DEFAULT_LIMIT = 100;
/** A tick that starts later than this counts as caught up in what we say about it, ms. */
const LATE_MS = 10_000;
/** With catchUp None a tick may start so late and no later, ms: long enough for another replica to take over. */
const ON_TIME_MS = 60_000;

/** The ticks that are due and undecided: after `from`, up to and including `latest`. */
export interface Due {
  from: number;
  latest: number;
}

type Look = {
  s: Snapshot;
  owner: LockedCronJob;
  ledger: Ledger;
  schedule: Schedule;
  due: Due;
  wait: Wait;
};

export function decideDue(look: Look): Decision {
  return tooLate(look) ?? tooMany(look) ?? notOnTime(look) ?? whileActive(look) ?? launchNext(look);
}

type CatchUp = "None" | "Latest" | "All";

function catchUpOf({ concurrencyPolicy, catchUp }: LockedCronJobSpec): CatchUp {
  return catchUp?.policy ?? (concurrencyPolicy === "Queue" ? "All" : "Latest");
}

/** Ticks older than startingDeadlineSeconds never run. */
function tooLate({ s, owner, schedule, due, wait }: Look): Decision | undefined {
  const oldest = catchUpOf(owner.spec) === "All" ? schedule.next(due.from) : due.latest;
  const deadline = deadlineOf(s, oldest ?? due.latest);
  if (s.now <= deadline) {
    if (deadline !== Infinity) wait(deadline + 1);
    return undefined;
  }
  if (s.now < deadline + s.standByMs) {
    wait(deadline + s.standByMs);
    return nothing(Reason.StandBy, "another replica records the missed tick");
  }
  const seconds = owner.spec.startingDeadlineSeconds ?? 0;
  const tick = schedule.lastDue(due.from, s.now - seconds * 1000 - 1) ?? due.latest;
  return miss(
    schedule,
    due,
    tick,
    Reason.TooLate,
    `tick ${iso(tick)} could not start within startingDeadlineSeconds (${seconds})`,
  );
}

/** When every tick is to run, only so many wait; the oldest are given up. */
function tooMany({ s, owner, schedule, due, wait }: Look): Decision | undefined {
  const { spec } = owner;
  if (catchUpOf(spec) !== "All") return undefined;
  const queue = spec.concurrencyPolicy === "Queue";
  const limit = (queue ? spec.queueLimit : spec.catchUp?.limit) ?? DEFAULT_LIMIT;
  if (schedule.countFires(due.from, due.latest, limit + 1) <= limit) return undefined;
  let tick: number | null = due.latest;
  for (let kept = 0; kept < limit && tick !== null; kept++) {
    tick = schedule.lastFire(due.from, tick - 1);
  }
  if (tick === null) return undefined;
  const at = schedule.dueAt(due.latest) + s.standByMs;
  if (s.now < at) {
    wait(at);
    return nothing(Reason.StandBy, "another replica records the missed ticks");
  }
  const field = queue ? "queueLimit" : "catchUp.limit";
  const reason = queue ? Reason.QueueFull : Reason.CatchUpLimit;
  return miss(
    schedule,
    due,
    tick,
    reason,
    `more than ${limit} ticks were due (${field}): those up to ${iso(tick)} do not run`,
  );
}

/** With catchUp None a tick runs when it is due, or not at all. */
function notOnTime({ s, owner, schedule, due, wait }: Look): Decision | undefined {
  if (catchUpOf(owner.spec) !== "None") return undefined;
  const until = schedule.dueAt(due.latest) + ON_TIME_MS;
  if (s.now <= until) {
    wait(until + 1);
    return undefined;
  }
  if (s.now < until + s.standByMs) {
    wait(until + s.standByMs);
    return nothing(Reason.StandBy, "another replica records the missed tick");
  }
  const message = `tick ${iso(due.latest)} could not start within a minute, and catchUp.policy is None`;
  return miss(schedule, due, due.latest, Reason.NotCaughtUp, message);
}

function whileActive(look: Look): Decision | undefined {
  const { s, owner, ledger, due } = look;
  const active = activeRuns(ledger);
  const policy = owner.spec.concurrencyPolicy ?? "Forbid";
  const [first] = active;
  if (first === undefined) return undefined;
  if (policy === "Allow") {
    const message = `tick ${iso(due.latest)} waits: ${active.length} Jobs are active, which is the most that one LockedCronJob may have`;
    return active.length >= MAX_RUNS ? nothing(Reason.TooManyRuns, message) : undefined;
  }
  if (policy === "Skip") return skip(look, first);
  // What is being created can be neither waited for by event nor replaced yet.
  const starting = active.find((run) => run.jobUID === undefined);
  if (starting !== undefined) {
    const what = starting.waiting === undefined ? "is being created" : "waits for a mutex";
    const message = `tick ${iso(due.latest)} waits: Job ${starting.jobName} ${what}`;
    return nothing(Reason.LaunchInProgress, message);
  }
  return policy === "Replace" ? replace(look, active) : waitsFor(first, due, policy, s.rank);
}

function skip({ s, schedule, due, wait }: Look, active: Run): Decision {
  const at = schedule.dueAt(due.latest) + s.standByMs;
  if (s.now < at) {
    wait(at);
    return nothing(Reason.StandBy, "another replica records the skipped tick");
  }
  const message = `tick ${iso(due.latest)} is skipped: Job ${active.jobName} is still active`;
  return {
    ...miss(schedule, due, due.latest, Reason.JobAlreadyActive, message),
    event: alreadyActive(due, "Skip"),
  };
}

/** The runs that are active are ended first; the tick runs when their pods are gone. */
function replace({ s, schedule, due, wait }: Look, active: readonly Run[]): Decision {
  const step = stopFirst(s, active, `the run of tick ${iso(due.latest)}`);
  const at = schedule.dueAt(due.latest) + s.standByMs;
  if (step.do === "nothing" || s.now >= at) return step;
  wait(at);
  return nothing(Reason.StandBy, "another replica ends the run that is replaced");
}

/** Ends the first of these runs that is not being ended yet, to make room for `what`. */
export function stopFirst(s: Snapshot, active: readonly Run[], what: string): Decision {
  for (const run of active) {
    const job = s.jobs.find((j) => j.uid === run.jobUID);
    if (run.stop !== undefined || run.ended === true || job === undefined) continue;
    const message = `Job ${job.name} is replaced by ${what}`;
    return { do: "stop", run, job, reason: Reason.Replaced, message };
  }
  const message = `Job ${active[0]?.jobName} is being replaced by ${what}: its pods are not gone yet`;
  return nothing(Reason.Replaced, message);
}

function waitsFor(run: Run, due: Due, policy: "Forbid" | "Queue", rank: number): Decision {
  const message = `tick ${iso(due.latest)} waits: Job ${run.jobName} is still active and the policy is ${policy}`;
  return {
    ...nothing(Reason.JobAlreadyActive, message),
    ...(rank > 0 ? {} : { event: alreadyActive(due, policy) }),
  };
}

function alreadyActive(
  due: Due,
  policy: "Forbid" | "Skip" | "Queue",
): NonNullable<Decision["event"]> {
  return {
    reason: EventReason.JobAlreadyActive,
    type: "Normal",
    message: `Not starting job because prior execution is running and concurrency policy is ${policy}`,
    once: iso(due.latest),
  };
}

function launchNext({ s, owner, schedule, due, wait }: Look): Decision {
  const all = catchUpOf(owner.spec) === "All";
  const tick = (all ? schedule.next(due.from) : null) ?? due.latest;
  const dueAt = schedule.dueAt(tick);
  const standByUntil = dueAt + s.standByMs;
  if (s.now < standByUntil) {
    wait(standByUntil);
    return nothing(Reason.StandBy, `rank ${s.rank}: stands by for tick ${iso(tick)}`);
  }
  if (s.mutexes?.ok === false) return mutexRefused(s, owner, s.mutexes);
  const late = s.now - dueAt > LATE_MS;
  return {
    do: "launch",
    tick,
    missed: all ? 0 : schedule.countFires(due.from, tick, MAX_COUNTED) - 1,
    reason: late ? Reason.CaughtUp : Reason.Due,
    message: late ? `tick ${iso(tick)} was missed and is caught up` : `tick ${iso(tick)} is due`,
  };
}

/** Nothing is launched without what spec.lock.mutexes asks for; the tick waits until it is mended. */
function mutexRefused(
  s: Snapshot,
  owner: LockedCronJob,
  { reason, message }: { reason: "MutexNotAllowed"; message: string },
): Decision {
  const once = `mutexes of generation ${owner.metadata.generation ?? 0}`;
  const event = { reason: EventReason[reason], type: "Warning" as const, message, once };
  return { ...nothing(reason, message), ...(s.rank > 0 ? {} : { event }) };
}

function miss(
  schedule: Schedule,
  { from }: Due,
  tick: number,
  reason: Reason,
  message: string,
): Decision {
  return {
    do: "miss",
    tick,
    count: schedule.countFires(from, tick, MAX_COUNTED),
    reason,
    message,
  };
}

function iso(tick: number): string {
  return new Date(tick).toISOString();
}
