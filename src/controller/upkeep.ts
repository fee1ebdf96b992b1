/** What is done when there is nothing else to do, by the first replica in line. */
import { Reason } from "../api/reasons.ts";
import { beyondHistory } from "../domain/decide/history.ts";
import { isGone } from "../domain/decide/types.ts";
import type { Decision, Snapshot } from "../domain/decide/index.ts";
import { mustStay } from "../domain/ledger.ts";
import type { LedgerRecord } from "./ports.ts";

export function upkeepOf(
  s: Snapshot,
  record: LedgerRecord | undefined,
  decision: Decision,
): Decision | undefined {
  if (s.rank > 0) return undefined;
  const upkeep = history(s) ?? letGo(s, record);
  return upkeep === undefined || decision.at === undefined
    ? upkeep
    : { ...upkeep, at: decision.at };
}

/** Keeps the history within its limits. */
function history(s: Snapshot): Decision | undefined {
  if (s.owner === undefined || s.ledger.state !== "present") return undefined;
  const jobs = beyondHistory(s.owner, s.ledger.ledger, s.jobs);
  if (jobs.length === 0) return undefined;
  return {
    do: "prune",
    jobs,
    reason: Reason.JobFinished,
    message: `${jobs.length} finished Jobs are beyond the history limits`,
  };
}

/** A ledger that is being deleted goes when it is at rest; without its LockedCronJob as soon as no POST can arrive. */
function letGo(s: Snapshot, record: LedgerRecord | undefined): Decision | undefined {
  if (record?.heldInDeletion !== true || s.ledger.state !== "present") return undefined;
  const { ledger } = s.ledger;
  if (mustStay(ledger) || (ledger.runs.length > 0 && !isGone(s))) return undefined;
  return {
    do: "letLedgerGo",
    reason: Reason.FinalizerPending,
    message: "the ledger was deleted and nothing needs it any more",
  };
}
