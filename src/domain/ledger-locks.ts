/** What happens to the locks of a run in the ledger: mutexes waited for and granted. Pure. */
import {
  appendDecisions,
  changeRun,
  findRun,
  replaceRun,
  type Decision,
  type Ledger,
} from "./ledger.ts";
import type { Waiting } from "./lock-terms.ts";

/**
 * All its mutexes are held: the run gets its first attempt, and the token that all of their fences bear.
 * ORDER: only after the fences were seen to name it, and on the version in which it waits. A fence is given up only after
 * the ledger says that the run is over, and from then on this does not go through any more.
 */
export function grant(ledger: Ledger, runId: string, by: string, token: number): Ledger {
  const run = findRun(ledger, runId);
  if (run?.waiting === undefined || token <= 0 || token < run.token) {
    throw new Error(`run ${runId} does not wait for mutexes, or its token would go back`);
  }
  const { waiting: _, ...rest } = run;
  const granted = { ...rest, token, attempts: [{ n: 1, by, settled: false }] };
  return { ...replaceRun(ledger, granted), token: Math.max(ledger.token, token) };
}

/** The run is kept waiting by this mutex. */
export function keepWaiting(
  ledger: Ledger,
  runId: string,
  on: NonNullable<Waiting["on"]>,
  decision: Decision,
): Ledger {
  const told = { ...ledger, decisions: appendDecisions(ledger.decisions, [decision]) };
  return changeRun(told, runId, (run) =>
    run.waiting === undefined ? run : { ...run, waiting: { ...run.waiting, on } },
  );
}
