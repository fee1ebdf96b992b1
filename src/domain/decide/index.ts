/**
 * What to do about one LockedCronJob: a pure function from everything that is known to one step with its reason.
 * The order of the questions follows native CronJob's syncCronJob (kubernetes, pkg/controller/cronjob).
 */
import { EventReason, Reason } from "../../api/reasons.ts";
import type { LockedCronJob } from "../../api/types.ts";
import { deadlineOf, decideRun, decideStrays, isClockWrong, isGone } from "./runs.ts";
import { activeRuns, MAX_RUNS, type Ledger, type Run } from "../ledger.ts";
import type { Schedule } from "../schedule/index.ts";
import type { Decision, Snapshot } from "./types.ts";

export { isClockWrong, MAX_CLOCK_SKEW_MS } from "./runs.ts";
export type { Action, AttemptFate, Decision, LedgerState, Snapshot } from "./types.ts";

/** How often a replica whose clock is wrong looks whether it still is, ms. */
const CLOCK_POLL_MS = 5_000;

/** Missed ticks are counted up to here; beyond it the number says "at least". */
export const MAX_COUNTED = 10_000;

export function decide(s: Snapshot): Decision {
  let at = Infinity;
  const wait = (when: number): void => {
    at = Math.min(at, when);
  };
  const decision = decideNow(s, wait);
  at = Math.min(at, decision.at ?? Infinity);
  return at === Infinity ? decision : { ...decision, at };
}

function decideNow(s: Snapshot, wait: (at: number) => void): Decision {
  const ledger = s.ledger.state === "present" ? s.ledger.ledger : undefined;
  if (s.ledger.state === "newer") {
    return nothing(Reason.LedgerUnreadable, s.ledger.message);
  }
  for (const run of ledger?.runs ?? []) {
    const step = decideRun(s, run, wait);
    if (step !== undefined) return step;
  }
  const owner = isGone(s) ? undefined : s.owner;
  // ORDER: a lost ledger is made anew before any finalizer is judged. Until then the Job may be all that is known of its
  // tick, and without the finalizer it may vanish.
  if (ledger === undefined && owner !== undefined) return initLedger(s, wait);
  const step = decideStrays(s, ledger?.runs ?? [], wait);
  if (step !== undefined) return step;
  if (owner === undefined || ledger === undefined) {
    return nothing(Reason.Deleted, "it is being deleted");
  }
  return decideTick(s, owner, ledger, wait);
}

/** What is wrong with a clock, and the way out. */
export function clockSkewMessage(skewMs: number): string {
  const by = `${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? "ahead of" : "behind"}`;
  return `this replica's clock is ${by} the API server's: it takes no ticks until both agree (NTP on the node)`;
}

function initLedger(s: Snapshot, wait: (at: number) => void): Decision {
  // Any replica may do it; each rank gets three seconds' start on the next, which would only meet AlreadyExists.
  const created = Date.parse(s.owner?.metadata.creationTimestamp ?? "");
  const at = created + 3_000 * s.rank;
  if (s.now < at) {
    wait(at);
    return nothing(Reason.StandBy, "another replica makes the ledger");
  }
  const orphan = s.ledger.state === "orphan";
  return {
    do: "initLedger",
    reason: orphan ? Reason.LedgerOfNamesake : Reason.LedgerMissing,
    message: orphan ? "the ledger is not of this LockedCronJob: begin anew" : "there is no ledger",
  };
}

function decideTick(
  s: Snapshot,
  owner: LockedCronJob,
  ledger: Ledger,
  wait: (at: number) => void,
): Decision {
  if (s.schedule === undefined || !s.schedule.ok) {
    const { reason, message } = s.schedule ?? { reason: Reason.UnparseableSchedule, message: "" };
    return invalidSchedule(s, owner, reason, message);
  }
  const { schedule } = s.schedule;
  // ORDER: before anything that is measured by our clock is written. A tick of the future that is claimed silences the
  // LockedCronJob until then, and an anchor in the future does so too.
  if (isClockWrong(s)) {
    wait(s.now + CLOCK_POLL_MS);
    return nothing(Reason.ClockSkew, clockSkewMessage(s.clockSkewMs));
  }
  if (ledger.schedule !== scheduleText(owner)) {
    return {
      do: "rebase",
      schedule: scheduleText(owner),
      reason: Reason.ScheduleChanged,
      message: "the schedule or its zone was edited: ticks count from now on",
    };
  }
  if (owner.spec.suspend === true) return nothing(Reason.Suspended, "it is suspended");

  const from = ticksFrom(ledger);
  const tick = schedule.lastFire(from, s.now);
  const next = schedule.next(tick ?? from);
  if (next !== null) wait(next);
  if (tick === null) {
    return next === null
      ? nothing(Reason.NeverFires, "the schedule has no tick in the coming five years")
      : nothing(Reason.NotDue, `next tick at ${new Date(next).toISOString()}`);
  }
  return decideDue(s, owner, ledger, schedule, { from, tick }, wait);
}

function decideDue(
  s: Snapshot,
  owner: LockedCronJob,
  ledger: Ledger,
  schedule: Schedule,
  { from, tick }: { from: number; tick: number },
  wait: (at: number) => void,
): Decision {
  const iso = new Date(tick).toISOString();
  const count = schedule.countFires(from, tick, MAX_COUNTED);
  const deadline = deadlineOf(s, tick);
  const standByUntil = tick + s.standByMs;
  if (s.now > deadline) {
    if (s.now < deadline + s.standByMs) {
      wait(deadline + s.standByMs);
      return nothing(Reason.StandBy, "another replica records the missed tick");
    }
    return { do: "miss", tick, count, ...tooLate(iso, owner.spec.startingDeadlineSeconds) };
  }
  const [active] = activeRuns(ledger);
  if (owner.spec.concurrencyPolicy !== "Allow" && active !== undefined) {
    if (deadline !== Infinity) wait(deadline + 1);
    return stillActive(active, tick, iso, s.rank);
  }
  if (ledger.runs.length >= MAX_RUNS) {
    if (deadline !== Infinity) wait(deadline + 1);
    return nothing(
      Reason.TooManyRuns,
      `tick ${iso} waits: ${ledger.runs.length} Jobs are active, which is the most that one LockedCronJob may have`,
    );
  }
  if (s.now < standByUntil) {
    wait(standByUntil);
    return nothing(Reason.StandBy, `rank ${s.rank}: stands by for tick ${iso}`);
  }
  const late = s.now - tick > LATE_MS;
  return {
    do: "launch",
    tick,
    missed: count - 1,
    reason: late ? Reason.CaughtUp : Reason.Due,
    message: late ? `tick ${iso} was missed and is caught up` : `tick ${iso} is due`,
  };
}

/** A tick that starts later than this counts as caught up in what we say about it, ms. */
const LATE_MS = 10_000;

function tooLate(iso: string, seconds = 0): Pick<Decision, "reason" | "message"> {
  return {
    reason: Reason.TooLate,
    message: `tick ${iso} could not start within startingDeadlineSeconds (${seconds})`,
  };
}

function invalidSchedule(
  s: Snapshot,
  owner: LockedCronJob,
  reason: "UnparseableSchedule" | "UnknownTimeZone",
  message: string,
): Decision {
  const once = `generation ${owner.metadata.generation ?? 0}`;
  return {
    ...nothing(reason, message),
    ...(s.rank > 0
      ? {}
      : { event: { reason: EventReason[reason], type: "Warning" as const, message, once } }),
  };
}

function stillActive(run: Run, tick: number, iso: string, rank: number): Decision {
  const starting = run.jobUID === undefined;
  const message = starting
    ? `tick ${iso} waits: Job ${run.jobName} is being created`
    : `tick ${iso} waits: Job ${run.jobName} is still active and the policy is Forbid`;
  return {
    ...nothing(starting ? Reason.LaunchInProgress : Reason.JobAlreadyActive, message),
    ...(starting || rank > 0
      ? {}
      : {
          event: {
            reason: EventReason.JobAlreadyActive,
            type: "Normal" as const,
            message:
              "Not starting job because prior execution is running and concurrency policy is Forbid",
            once: iso,
          },
        }),
  };
}

function nothing(reason: Reason, message: string): Decision {
  return { do: "nothing", reason, message };
}

/** Ticks at or before this are decided, or are none of ours. */
export function ticksFrom(ledger: Ledger): number {
  return Math.max(ledger.lastTick, ledger.anchor);
}

/** What `anchor` belongs to: schedule and zone as JSON. An edit of either makes ticks count anew. */
export function scheduleText(owner: LockedCronJob): string {
  const { schedule, timeZone } = owner.spec;
  return JSON.stringify([schedule, timeZone ?? null]);
}
