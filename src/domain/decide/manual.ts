/** Runs that people ask for, by annotations on the LockedCronJob. They work while it is suspended, and move no tick. */
import { EventReason, Reason } from "../../api/reasons.ts";
import type { LockedCronJob } from "../../api/types.ts";
import { activeRuns, MAX_RUNS, type Ledger } from "../ledger.ts";
import { backfillOf, triggerOf } from "../manual.ts";
import type { Schedule } from "../schedule/index.ts";
import { stopFirst } from "./due.ts";
import { ticksFrom } from "./ticks.ts";
import { isOurTurn, nothing, type Decision, type Snapshot, type Wait } from "./types.ts";

/** One run now; undefined when there is none to start, or it has to wait. */
export function decideTrigger(
  s: Snapshot,
  owner: LockedCronJob,
  ledger: Ledger,
  wait: Wait,
): Decision | undefined {
  const trigger = triggerOf(owner);
  if (trigger === undefined) return undefined;
  if (!trigger.ok) return invalid(s, trigger.message);
  const { id, policy } = trigger.value;
  if (ledger.triggers?.includes(id) === true) return undefined;
  const active = activeRuns(ledger);
  const beside = policy === "Override" || owner.spec.concurrencyPolicy === "Allow";
  if (active.length >= MAX_RUNS) return undefined;
  const inTheWay = !beside && active.length > 0;
  if (inTheWay && owner.spec.concurrencyPolicy !== "Replace") return undefined;
  if (!isOurTurn(s, wait, `trigger ${id}`)) return undefined;
  if (inTheWay) return stopFirst(s, active, `the run that trigger ${id} asks for`);
  return {
    do: "launch",
    tick: Math.floor(s.now / 1000) * 1000,
    missed: 0,
    manual: { id, kind: "trigger" },
    beside,
    reason: Reason.Triggered,
    message: `trigger ${id} asks for a run now`,
  };
}

/** The next tick of a past range; when nothing else is to be done. */
export function decideBackfill(
  s: Snapshot,
  owner: LockedCronJob,
  ledger: Ledger,
  schedule: Schedule,
  wait: Wait,
): Decision | undefined {
  const backfill = backfillOf(owner);
  if (backfill === undefined) return undefined;
  if (!backfill.ok) return invalid(s, backfill.message);
  const { id, from, to, policy } = backfill.value;
  const cursor = ledger.backfill?.id === id ? ledger.backfill.cursor : from - 1;
  const tick = schedule.next(cursor);
  // A tick that is still to be decided runs by the schedule, and not by a backfill as well.
  if (tick === null || tick > Math.min(to, ticksFrom(ledger))) return undefined;
  const active = activeRuns(ledger);
  if (active.length > 0 && (policy === "Forbid" || active.length >= MAX_RUNS)) return undefined;
  if (!isOurTurn(s, wait, `backfill ${id} ${tick}`)) return undefined;
  return {
    do: "launch",
    tick,
    missed: 0,
    manual: { id, kind: "backfill" },
    beside: policy === "Allow",
    reason: Reason.Backfill,
    message: `backfill ${id} asks for tick ${new Date(tick).toISOString()}`,
  };
}

function invalid(s: Snapshot, message: string): Decision | undefined {
  if (s.rank > 0) return undefined;
  const event = { reason: EventReason.InvalidAnnotation, type: "Warning" as const };
  return {
    ...nothing(Reason.InvalidAnnotation, message),
    event: { ...event, message, once: message },
  };
}
