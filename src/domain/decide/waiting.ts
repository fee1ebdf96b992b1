import { Reason } from "../../api/reasons.ts";
import type { Run } from "../ledger.ts";
import type { Waiting } from "../lock-terms.ts";
import { CLOCK_POLL_MS, isClockWrong } from "./clock.ts";
import { isGone, type Decision, type Snapshot, type Wait } from "./types.ts";

/**
 * A run that is claimed and waits for its mutexes. No attempt of it exists, so nothing of it can arrive: giving up is one
 * compare-and-set, and needs no proof of anybody's death.
 */
export function decideWaiting(
  s: Snapshot,
  run: Run,
  waiting: Waiting,
  wait: Wait,
): Decision | undefined {
  if (isGone(s) || run.of !== undefined) {
    return {
      do: "abandon",
      run,
      missed: false,
      reason: Reason.Deleted,
      message: "the LockedCronJob went while its run waited for mutexes",
    };
  }
  // By such a clock nobody can tell whether its time to wait is over.
  const ours = isClockWrong(s) ? s.now + CLOCK_POLL_MS : s.oursAt(run);
  const busy = s.busyOn?.(run);
  // Its mutex is held by a run that lives: the fence's watch tells when that is over, so there is nothing to ask for.
  if (busy !== undefined && s.now <= waiting.until && waiting.on?.mutex === busy.mutex) {
    wait(Math.max(waiting.until + 1, ours));
    return undefined;
  }
  if (s.now < ours) {
    wait(ours);
    return undefined;
  }
  if (s.schedule?.ok !== true) return unbuildable(s, run, waiting, wait);
  return {
    do: "lockMutexes",
    run,
    reason: busy === undefined ? Reason.Due : Reason.MutexBusy,
    message:
      busy === undefined
        ? `Job ${run.jobName} needs ${run.lock?.mutexes?.join(", ")}`
        : `Job ${run.jobName} finds mutex ${busy.mutex} busy`,
  };
}

/** Without a calendar no Job can be built; but it must not keep others from its mutexes for longer than it may wait. */
function unbuildable(s: Snapshot, run: Run, { until }: Waiting, wait: Wait): Decision | undefined {
  if (s.now <= until) {
    wait(Math.min(until + 1, s.now + CLOCK_POLL_MS));
    return undefined;
  }
  return {
    do: "abandon",
    run,
    missed: run.manual === undefined,
    reason: Reason.TooLate,
    message:
      "the schedule became invalid while it waited for mutexes, and lock.waitSeconds are over",
  };
}
