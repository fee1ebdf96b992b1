/** Effects on a ledger as a whole: let go, rebased, a missed tick recorded. How it is made: ledger-making.ts. */
import { keyOf } from "../api/names.ts";
import { EventReason, Reason } from "../api/reasons.ts";
import type { LockedCronJob } from "../api/types.ts";
import {
  MAX_COUNTED,
  scheduleText,
  ticksFrom,
  type Action,
  type Decision,
} from "../domain/decide/index.ts";
import { miss, type Ledger } from "../domain/ledger.ts";
import { parseSpec, specOfText, type ParseScheduleResult } from "../domain/schedule/index.ts";
import { casLost, entryOf, writeLedger } from "./cas.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import { parseTime } from "./asked.ts";
import type { LedgerRecord } from "./ports.ts";

type Of<K extends Action["do"]> = Extract<Action, { do: K }>;

/**
 * Lets go of a ledger that was deleted while its finalizer held it. Until then it has served on; the one that takes its
 * place has to know as much, and the Jobs of its ticks may be gone.
 */
export async function letGo(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult> {
  const owner = await c.owners.read(key);
  const lives =
    owner?.metadata.uid === ledger.owner && owner.metadata.deletionTimestamp === undefined;
  if (lives && !tells(owner, ledger)) {
    return againIn(c, 1_000, "the status does not tell yet what the ledger knows");
  }
  try {
    await c.ledgers.letGo(record);
    // CRASH WINDOW: without this one it is made from the status.
    if (lives) await c.ledgers.create(owner, ledger);
  } catch (error) {
    return casLost(c, key, error);
  }
  return decideAgain(lives ? "made anew" : "gone");
}

/** Whether a ledger that is made from the status knows what this one does. */
function tells({ status }: LockedCronJob, ledger: Ledger): boolean {
  const { token, lastLaunched = 0, triggers, backfill } = ledger;
  return (
    (status?.token ?? 0) === token &&
    parseTime(status?.lastScheduleTime) === lastLaunched &&
    status?.lastTrigger === triggers?.at(-1) &&
    status?.backfill?.id === backfill?.id &&
    parseTime(status?.backfill?.cursor) === (backfill?.cursor ?? 0)
  );
}

/** An edited schedule: ticks count from now on. What was due by the old one and did not run is recorded. */
export async function rebase(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  action: Of<"rebase">,
): Promise<StepResult> {
  // ORDER: a replica whose cache is behind the edit would take the schedule back and skip what was due meanwhile.
  const owner = await c.owners.read(key);
  if (owner?.metadata.uid !== ledger.owner || scheduleText(owner) !== action.schedule) {
    return againIn(c, 1_000, "our copy of the schedule is behind");
  }
  const old = parseSpec(specOfText(ledger.schedule) ?? {}, key);
  const from = ticksFrom(ledger);
  const edited: Ledger = { ...ledger, schedule: action.schedule };
  if (owner.spec.onScheduleChange === "CatchUp") {
    return (await writeLedger(c, key, record, edited)) ?? decideAgain("rebased");
  }
  const why = "due by the old schedule when it was edited";
  const { next, count } = fromNow(c, edited, old, from, Reason.ScheduleChanged, why);
  const lost = await writeLedger(c, key, record, next);
  if (lost !== undefined) return lost;
  if (count > 0) c.observe.missed({ key, reason: Reason.ScheduleChanged, count });
  return decideAgain("rebased");
}

/** Ticks count from now on; those since `from` are recorded as missed. */
function fromNow(
  c: Context,
  ledger: Ledger,
  calendar: ParseScheduleResult,
  from: number,
  reason: Reason,
  message: string,
): { next: Ledger; count: number } {
  const now = c.clock.now();
  const next = { ...ledger, anchor: now };
  const last = calendar.ok ? calendar.schedule.lastFire(from, now) : null;
  if (!calendar.ok || last === null) return { next, count: 0 };
  const count = calendar.schedule.countFires(from, now, MAX_COUNTED);
  return {
    next: miss(next, last, count, entryOf(c, last, "Missed", reason, message)),
    count,
  };
}

/** Marks it as suspended. */
export async function noteSuspend(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult> {
  // ORDER: by a copy that is behind a resumption the mark would be set again.
  const owner = await c.owners.read(key);
  if (owner?.metadata.uid !== ledger.owner || owner.spec.suspend !== true) {
    return againIn(c, 1_000, "our copy of the spec is behind");
  }
  return (
    (await writeLedger(c, key, record, { ...ledger, suspended: true })) ?? decideAgain("suspended")
  );
}

/** Takes the mark back. With onResume FromNow, what was due meanwhile is recorded and does not run. */
export async function resumeTicks(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  calendar: ParseScheduleResult,
): Promise<StepResult> {
  const owner = await c.owners.read(key);
  if (owner?.metadata.uid !== ledger.owner || owner.spec.suspend === true) {
    return againIn(c, 1_000, "our copy of the spec is behind");
  }
  const { suspended: _, ...resumed } = ledger;
  if (owner.spec.onResume !== "FromNow") {
    return (await writeLedger(c, key, record, resumed)) ?? decideAgain("resumed");
  }
  const why = "due while it was suspended, and onResume is FromNow";
  const { next, count } = fromNow(c, resumed, calendar, ticksFrom(ledger), Reason.Suspended, why);
  const lost = await writeLedger(c, key, record, next);
  if (lost !== undefined) return lost;
  if (count > 0) c.observe.missed({ key, reason: Reason.Suspended, count });
  return decideAgain("resumed");
}

export async function recordMiss(
  c: Context,
  owner: LockedCronJob,
  record: LedgerRecord,
  ledger: Ledger,
  action: Of<"miss">,
  said: Pick<Decision, "reason" | "message" | "event">,
): Promise<StepResult> {
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  const entry = entryOf(c, action.tick, "Missed", said.reason, said.message);
  const lost = await writeLedger(c, key, record, miss(ledger, action.tick, action.count, entry));
  if (lost !== undefined) return lost;
  c.observe.missed({ key, reason: said.reason, count: action.count });
  const { type, reason, message } = said.event ?? {
    type: "Warning",
    reason: EventReason.MissSchedule,
    message: `Missed scheduled time to start a job: ${new Date(action.tick).toUTCString()}`,
  };
  c.events.event(owner, type, reason, message);
  return decideAgain("missed");
}
