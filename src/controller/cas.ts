import type { Key } from "../api/names.ts";
import { Reason } from "../api/reasons.ts";
import type { Decision, Ledger } from "../domain/ledger.ts";
import { hasReason, isUnknown } from "../kube/errors.ts";
import { decideAgain, type Context, type StepResult } from "./context.ts";
import type { LedgerRecord } from "./ports.ts";

/** Writes the next version of the ledger; undefined when it went through. */
export async function writeLedger(
  c: Context,
  key: Key,
  record: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult | undefined> {
  try {
    await c.ledgers.write(record, ledger);
    return undefined;
  } catch (error) {
    return casLost(c, key, error);
  }
}

/**
 * After a compare-and-set that did not go through: somebody else was first, or the answer was lost. Either way the
 * truth is read again and decided on anew; a write that went through unseen is found there.
 */
export async function casLost(c: Context, key: Key, error: unknown): Promise<StepResult> {
  if (hasReason(error, "Conflict", "AlreadyExists", "NotFound")) {
    c.observe.claimConflict();
  } else if (!isUnknown(error)) {
    return { next: "retry", error, outcome: "the ledger was not written" };
  }
  try {
    await c.ledgers.read(key);
  } catch (reading) {
    return { next: "retry", error: reading, outcome: "the ledger could not be read" };
  }
  return decideAgain("somebody else was first");
}

/** An entry of the ledger's decisions, by this replica, now. */
export function entryOf(
  c: Context,
  tick: number,
  decision: Decision["decision"],
  reason: string,
  message: string,
): Decision {
  return { at: c.clock.now(), tick, decision, reason, message, replica: c.replica };
}

/** What the ledger says of the earlier ticks that this one stands for. */
export function supersededBy(c: Context, t: { tick: number; missed: number }): Decision[] {
  if (t.missed === 0) return [];
  const message = `${t.missed} earlier tick${t.missed === 1 ? "" : "s"} did not run: only the latest one is caught up`;
  return [entryOf(c, t.tick, "Missed", Reason.Superseded, message)];
}
