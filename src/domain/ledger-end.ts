/** How a run leaves the ledger. Pure. */
import {
  appendDecisions,
  findRun,
  hasUnsettled,
  replaceRun,
  type Decision,
  type Ledger,
} from "./ledger.ts";

/** How a run ended. */
export interface Ending {
  decision: Decision;
  /** When its Job succeeded or failed, ms. */
  success?: number;
  failure?: number;
  missed?: number;
  /** lock.atLeastSeconds: it stays, and keeps its locks, until then. */
  keptUntil?: number;
}

/** The run is over: it leaves the ledger, at once or when its last attempt is settled. */
export function endRun(ledger: Ledger, runId: string, ending: Ending): Ledger {
  const run = findRun(ledger, runId);
  const { success, failure } = ending;
  const told: Ledger = {
    ...ledger,
    missed: ledger.missed + (ending.missed ?? 0),
    decisions: appendDecisions(ledger.decisions, [ending.decision]),
    ...(success === undefined
      ? {}
      : { lastSuccess: Math.max(success, ledger.lastSuccess ?? 0), consecutiveFailures: 0 }),
    ...(failure === undefined
      ? {}
      : {
          lastFailure: Math.max(failure, ledger.lastFailure ?? 0),
          consecutiveFailures: (ledger.consecutiveFailures ?? 0) + 1,
        }),
  };
  const kept = ending.keptUntil === undefined ? undefined : { keptUntil: ending.keptUntil };
  return run !== undefined && (hasUnsettled(run) || kept !== undefined)
    ? replaceRun(told, { ...run, ...kept, ended: true })
    : closeRun(told, runId);
}

/** Takes the run off the ledger; only when all its attempts are settled. */
export function closeRun(ledger: Ledger, runId: string): Ledger {
  const run = findRun(ledger, runId);
  if (run !== undefined && hasUnsettled(run)) {
    throw new Error(`run ${runId} has an attempt whose POST may still arrive`);
  }
  return { ...ledger, runs: ledger.runs.filter((r) => r.runId !== runId) };
}

/** lock.atLeastSeconds are over: an ended run excludes nothing any more, and leaves as soon as its attempts let it. */
export function letLockGo(ledger: Ledger, runId: string): Ledger {
  const run = findRun(ledger, runId);
  if (run === undefined || !hasUnsettled(run)) return closeRun(ledger, runId);
  const { keptUntil: _, ...rest } = run;
  return replaceRun(ledger, rest);
}
