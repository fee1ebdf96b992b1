import { Reason } from "../../api/reasons.ts";
import { occasionOf, type JobView } from "../job.ts";
import { decideWaiting } from "./waiting.ts";
import type { Attempt, Run } from "../ledger.ts";
import { isClockWrong } from "./clock.ts";
import { dropFinalizer } from "./strays.ts";
import { isGone, type AttemptFate, type Decision, type Snapshot, type Wait } from "./types.ts";

/** How often to look at a fact that no watch announces, ms. */
const POLL_MS = 5_000;
/** A Job's end is told in whole seconds and seen a little later; each rank leaves so much to the ranks before it, ms. */
const FINISH_HEAD_START_MS = 2_000;

/**
 * What an open run needs next; undefined when nothing is to be done now.
 *
 *   claimed            started                       ended
 *   no Job known ----- jobUID known, POSTs may ----- Job terminal, pods gone -> off the ledger, once no POST
 *     |  send/take over    still arrive -> settle,                              can arrive any more
 *     |  abandon           then drop the finalizer
 */
export function decideRun(s: Snapshot, run: Run, wait: Wait): Decision | undefined {
  if (run.waiting !== undefined) return decideWaiting(s, run, run.waiting, wait);
  const job = s.jobs.find((j) => j.name === run.jobName && j.runId === run.runId);
  if (run.jobUID !== undefined) return decideStarted(s, run, run.jobUID, job, wait);
  return job === undefined ? decideJobless(s, run, wait) : decideObserved(s, run, job, wait);
}

/** Claimed, and its Job is there: record it. */
function decideObserved(s: Snapshot, run: Run, job: JobView, wait: Wait): Decision | undefined {
  const at = s.oursAt(run);
  if (s.now < at) {
    wait(at);
    return undefined;
  }
  return {
    do: "recordStarted",
    run,
    jobUID: job.uid,
    n: job.attempt ?? 0,
    names: s.schedule?.ok === true ? occasionOf(run, s.schedule.schedule).names : [],
    reason: Reason.JobObserved,
    message: `Job ${job.name} exists: the tick has started`,
  };
}

/** Claimed, and no Job in sight. */
function decideJobless(s: Snapshot, run: Run, wait: Wait): Decision | undefined {
  const fates = run.attempts.map((a) => fateOf(s, run, a));
  if (isGone(s) || run.of !== undefined) return endOwnerless(s, run, fates, wait);

  // Without a calendar no Job can be built, and what is wrong with it is told once, when its ticks are looked at.
  if (s.schedule?.ok !== true) return decideUnbuildable(s, run, fates, wait);

  const unsent = run.attempts.find((_, i) => fates[i] === "unsent");
  if (unsent !== undefined) {
    return {
      do: "send",
      run,
      n: unsent.n,
      reason: Reason.Due,
      message: `attempt ${unsent.n} is claimed and not sent yet`,
    };
  }
  // By such a clock nobody can tell whether the tick is too late; and a ledger that is leaving takes no attempt.
  if (isClockWrong(s) || isLeaving(s)) {
    wait(s.now + POLL_MS);
    return undefined;
  }
  if (run.refusal !== undefined) return decideRefused(s, run, run.refusal, fates, wait);
  const at = s.oursAt(run);
  if (s.now < at) {
    wait(at);
    return undefined;
  }
  const tooLate = givenUp(s, run, fates);
  if (tooLate !== undefined) return tooLate;
  return {
    do: "takeOver",
    run,
    reason: Reason.TakeOver,
    message: `attempt ${run.attempts.at(-1)?.n} by ${run.attempts.at(-1)?.by} brought no Job in time`,
  };
}

/** Too late. While a POST may still arrive the tick cannot be given up; then it rather runs late. */
function givenUp(s: Snapshot, run: Run, fates: readonly AttemptFate[]): Decision | undefined {
  if (s.now <= deadlineOfRun(s, run) || !fates.every((f) => f === "past")) return undefined;
  return {
    do: "abandon",
    run,
    missed: true,
    reason: Reason.TooLate,
    message: "it was claimed, no Job appeared, and startingDeadlineSeconds are over",
  };
}

function decideUnbuildable(
  s: Snapshot,
  run: Run,
  fates: readonly AttemptFate[],
  wait: Wait,
): Decision | undefined {
  const tooLate = isClockWrong(s) ? undefined : givenUp(s, run, fates);
  if (tooLate === undefined) wait(s.now + POLL_MS);
  return tooLate;
}

/** Nothing is created for a LockedCronJob that is gone; its open claims only have to end. */
function endOwnerless(
  s: Snapshot,
  run: Run,
  fates: readonly AttemptFate[],
  wait: Wait,
): Decision | undefined {
  if (fates.every((f) => f === "past" || f === "unsent")) {
    return {
      do: "abandon",
      run,
      missed: false,
      reason: Reason.Deleted,
      message: "the LockedCronJob went before its Job was created",
    };
  }
  wait(s.now + POLL_MS);
  return undefined;
}

function decideRefused(
  s: Snapshot,
  run: Run,
  refusal: NonNullable<Run["refusal"]>,
  fates: readonly AttemptFate[],
  wait: Wait,
): Decision | undefined {
  const calendar = s.schedule?.ok === true ? s.schedule.schedule : undefined;
  // What somebody asked for stays asked for.
  const newer = run.manual === undefined ? (calendar?.lastDue(run.tick, s.now) ?? null) : null;
  const deadline = deadlineOfRun(s, run);
  // ORDER: given up only when no POST can arrive any more, or the tick would run after it was called missed.
  const closed = fates.every((f) => f === "past");
  if (closed && (newer !== null || s.now > deadline)) {
    const why = newer === null ? "startingDeadlineSeconds are over" : "a newer tick is due";
    return {
      do: "abandon",
      run,
      missed: true,
      reason: newer === null ? Reason.TooLate : Reason.Superseded,
      message: `no Job could be created (${refusal.reason}: ${refusal.message}), and ${why}`,
    };
  }
  const at = Math.max(refusal.retryAt + s.standByMs, closed ? 0 : s.oursAt(run));
  if (s.now >= at) {
    return {
      do: "takeOver",
      run,
      reason: Reason.RetryAfterRefusal,
      message: `the API server refused attempt ${run.attempts.at(-1)?.n} (${refusal.reason}): try again`,
    };
  }
  wait(at);
  if (closed) {
    const next = run.manual === undefined ? (calendar?.next(run.tick) ?? null) : null;
    wait(next === null ? Infinity : (calendar?.dueAt(next) ?? next));
    wait(deadline + 1);
  } else {
    wait(s.now + POLL_MS);
  }
  return undefined;
}

function decideStarted(
  s: Snapshot,
  run: Run,
  jobUID: string,
  job: JobView | undefined,
  wait: Wait,
): Decision | undefined {
  const open = run.attempts.filter((a) => !a.settled);
  const over = open.filter((a) => ["past", "unsent"].includes(fateOf(s, run, a)));
  if (over.length > 0) {
    return {
      do: "settle",
      run,
      ns: over.map((a) => a.n),
      reason: Reason.AttemptSettled,
      message: "no POST of these attempts can arrive any more",
    };
  }
  const own = job?.uid === jobUID ? job : undefined;
  if (run.stop !== undefined && own !== undefined) {
    const step = stopped(s, run, run.stop, own);
    if (step !== undefined) return step;
  }
  if (run.keptUntil !== undefined && (open.length > 0 || own?.hasLaunchFinalizer !== true)) {
    if (open.length > 0) wait(s.now + POLL_MS);
    return decideKept(s, run, run.keptUntil, wait);
  }
  // ORDER: the finalizer goes only after every attempt is settled in the ledger. Until then a late POST must meet the Job.
  if (open.length > 0) {
    wait(s.now + POLL_MS);
    if (run.ended === true || own?.outcome === undefined) return undefined;
  } else if (own?.outcome === undefined && own?.hasLaunchFinalizer === false) {
    return undefined;
  }
  const at =
    own?.finishedAt === undefined
      ? s.oursAt(run)
      : own.finishedAt + s.rank * FINISH_HEAD_START_MS + s.standByMs;
  if (s.now < at && s.rank > 0) {
    wait(at);
    return undefined;
  }
  if (own === undefined && run.ended === true) return close(run);
  if (own !== undefined && open.length === 0) {
    if (own.hasLaunchFinalizer) {
      return dropFinalizer(own, false, "its launch is complete, nothing can create it again");
    }
    if (run.ended === true) return close(run);
  }
  // How long lock.atLeastSeconds keep its locks is measured by our clock.
  if (run.lockedAt !== undefined && isClockWrong(s)) {
    wait(s.now + POLL_MS);
    return undefined;
  }
  if (own === undefined) return lookForJob(s, run);
  return {
    do: "finish",
    run,
    job: own,
    reason: Reason.JobFinished,
    message: `Job ${own.name} finished: ${own.outcome}`,
  };
}

/** Marked as to be ended, but its Job was not deleted: the replica that was about to has died, or was refused. */
function stopped(
  s: Snapshot,
  run: Run,
  { reason, message }: NonNullable<Run["stop"]>,
  job: JobView,
): Decision | undefined {
  if (job.deleting || job.outcome !== undefined || s.rank > 0) return undefined;
  return { do: "stop", run, job, reason, message };
}

/** It has ended, and lock.atLeastSeconds keep its locks: any replica lets them go, those that rank later a little later. */
function decideKept(s: Snapshot, run: Run, until: number, wait: Wait): Decision | undefined {
  const at = isClockWrong(s) ? s.now + POLL_MS : until + s.rank * FINISH_HEAD_START_MS;
  if (s.now < at) {
    wait(at);
    return undefined;
  }
  return {
    do: "letLockGo",
    run,
    reason: Reason.AtLeastKept,
    message: `lock.atLeastSeconds of ${run.jobName} are over`,
  };
}

function lookForJob(s: Snapshot, run: Run): Decision {
  return {
    do: "lookForJob",
    run,
    reason: Reason.JobGone,
    message: `Job ${run.jobName} is not in the cache: look for it`,
    at: s.now + POLL_MS,
  };
}

function close(run: Run): Decision {
  return {
    do: "close",
    run,
    reason: Reason.AttemptSettled,
    message: `the run of ${run.jobName} has ended and no POST of it can arrive any more`,
  };
}

function fateOf(s: Snapshot, run: Run, attempt: Attempt): AttemptFate {
  return attempt.settled ? "past" : s.fateOf(run, attempt);
}

/** The ledger is being deleted and takes no new attempt. */
function isLeaving({ ledger }: Snapshot): boolean {
  return ledger.state === "present" && ledger.leaving !== undefined;
}

function deadlineOfRun(s: Snapshot, run: Run): number {
  return run.manual === undefined ? deadlineOf(s, run.tick) : Infinity;
}

/** The last instant at which the tick may still start; Infinity without startingDeadlineSeconds. */
export function deadlineOf(s: Snapshot, tick: number): number {
  const seconds = s.owner?.spec.startingDeadlineSeconds;
  if (seconds === undefined) return Infinity;
  const dueAt = s.schedule?.ok === true ? s.schedule.schedule.dueAt(tick) : tick;
  return dueAt + seconds * 1000;
}
