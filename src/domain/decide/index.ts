/**
 * What to do about one LockedCronJob: a pure function from everything that is known to one step with its reason.
 * The order of the questions follows native CronJob's syncCronJob (kubernetes, pkg/controller/cronjob).
 */
import { EventReason, Reason } from "../../api/reasons.ts";
import type { LockedCronJob } from "../../api/types.ts";
import { decideDue } from "./due.ts";
import { CLOCK_POLL_MS, clockSkewMessage, isClockWrong } from "./clock.ts";
import { decideBackfill, decideTrigger } from "./manual.ts";
import { decideRun } from "./runs.ts";
import { decideStrays, unexpectedJob } from "./strays.ts";
import { scheduleText, ticksFrom } from "./ticks.ts";
import type { Ledger } from "../ledger.ts";
import type { Schedule } from "../schedule/index.ts";
import {
  isGone,
  isOurTurn,
  nothing,
  type Decision,
  type LedgerState,
  type Snapshot,
  type Wait,
} from "./types.ts";

export { MAX_COUNTED } from "./due.ts";
export { scheduleText, ticksFrom } from "./ticks.ts";
export { clockSkewMessage, isClockWrong, MAX_CLOCK_SKEW_MS } from "./clock.ts";
export type { Action, AttemptFate, Decision, LedgerState, Snapshot } from "./types.ts";

export function decide(s: Snapshot): Decision {
  let at = Infinity;
  const wait = (when: number): void => {
    at = Math.min(at, when);
  };
  const decision = decideNow(s, wait);
  at = Math.min(at, decision.at ?? Infinity);
  return at === Infinity ? decision : { ...decision, at };
}

function decideNow(s: Snapshot, wait: Wait): Decision {
  const ledger = s.ledger.state === "present" ? s.ledger.ledger : undefined;
  if (s.ledger.state === "newer") {
    return nothing(Reason.LedgerUnreadable, s.ledger.message);
  }
  for (const run of ledger?.runs ?? []) {
    if (s.passOver?.has(run.runId) === true) continue;
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
  const trouble = ledgerTroubleOf(s.ledger);
  if (trouble !== undefined) return blocked(s, trouble);
  return decideTick(s, owner, ledger, wait);
}

function blocked(s: Snapshot, { reason, message }: { reason: Reason; message: string }): Decision {
  if (s.rank > 0) return nothing(reason, message);
  const event = { reason: EventReason.LedgerBlocked, type: "Warning" as const, message };
  return { ...nothing(reason, message), event: { ...event, once: message } };
}

/** What is wrong with a ledger that cannot be made anew without somebody's help, and the way out. */
export function ledgerTroubleOf(
  state: LedgerState,
): { reason: Reason; message: string } | undefined {
  if (state.state === "present" && state.leaving !== undefined) {
    const message =
      `the ledger is being deleted, and finalizers of others keep it (${state.leaving.join(", ")}): ` +
      "no tick can be claimed until they are taken off the Lease";
    return { reason: Reason.LedgerBlocked, message };
  }
  if (state.state === "newer") return { reason: Reason.LedgerUnreadable, message: state.message };
  if (state.state !== "orphan" || state.why === "namesake" || !state.held) return undefined;
  const message =
    "the ledger is garbled, and it knew of a Job whose creation may still be on its way: nothing is launched. " +
    "Put its annotation lockedcron.io/ledger back; or, once no operator of before runs any more, take the finalizer " +
    "lockedcron.io/launch off the Lease";
  return { reason: Reason.LedgerUnreadable, message };
}

function initLedger(s: Snapshot, wait: Wait): Decision {
  // Any replica may do it; each rank gets three seconds' start on the next, which would only meet AlreadyExists.
  const created = Date.parse(s.owner?.metadata.creationTimestamp ?? "");
  const at = created + 3_000 * s.rank;
  if (s.now < at) {
    wait(at);
    return nothing(Reason.StandBy, "another replica makes the ledger");
  }
  const orphan = s.ledger.state === "orphan" && s.ledger.why !== "empty";
  return {
    do: "initLedger",
    reason: orphan ? Reason.LedgerOfNamesake : Reason.LedgerMissing,
    message: orphan ? "the ledger is not of this LockedCronJob: begin anew" : "there is no ledger",
  };
}

function decideTick(s: Snapshot, owner: LockedCronJob, ledger: Ledger, wait: Wait): Decision {
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
      message: `the schedule was edited: ${
        owner.spec.onScheduleChange === "CatchUp"
          ? "ticks that the new one has missed are caught up"
          : "ticks count from now on"
      }`,
    };
  }
  const trigger = decideTrigger(s, owner, ledger, wait);
  if (trigger !== undefined && trigger.do !== "nothing") return trigger;
  const byCalendar =
    decideSuspension(s, owner, ledger, wait) ?? decideCalendar(s, owner, ledger, schedule, wait);
  if (byCalendar.do !== "nothing") return byCalendar;
  const backfill = decideBackfill(s, owner, ledger, schedule, wait);
  if (backfill !== undefined && backfill.do !== "nothing") return backfill;
  const event =
    byCalendar.event ?? trigger?.event ?? backfill?.event ?? unexpectedJob(s, ledger.runs, wait);
  return event === undefined ? byCalendar : { ...byCalendar, event };
}

function decideCalendar(
  s: Snapshot,
  owner: LockedCronJob,
  ledger: Ledger,
  schedule: Schedule,
  wait: Wait,
): Decision {
  const from = ticksFrom(ledger);
  const tick = schedule.lastDue(from, s.now);
  const next = schedule.next(tick ?? from);
  if (next !== null) wait(schedule.dueAt(next));
  if (tick === null) {
    return next === null
      ? nothing(Reason.NeverFires, "the schedule has no tick in the coming five years")
      : nothing(Reason.NotDue, `next tick at ${new Date(schedule.dueAt(next)).toISOString()}`);
  }
  return decideDue({ s, owner, ledger, schedule, due: { from, latest: tick }, wait });
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

/** Nothing is launched while it is suspended; that it was is marked in the ledger, so that onResume can be obeyed. */
function decideSuspension(
  s: Snapshot,
  owner: LockedCronJob,
  ledger: Ledger,
  wait: Wait,
): Decision | undefined {
  const { suspend = false, onResume = "CatchUp" } = owner.spec;
  const marked = ledger.suspended === true;
  if (!suspend) {
    if (!marked) return undefined;
    const then =
      onResume === "FromNow" ? "ticks count from now on" : "the latest tick is caught up";
    return { do: "resume", reason: Reason.Resumed, message: `it is resumed: ${then}` };
  }
  if (marked || !isOurTurn(s, wait, `suspend ${owner.metadata.generation ?? 0}`))
    return nothing(Reason.Suspended, "it is suspended");
  return { do: "noteSuspend", reason: Reason.Suspended, message: "it is suspended from now on" };
}
