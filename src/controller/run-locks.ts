/** The locks of a run: their name, and what becomes of them when it ends: kept for lock.atLeastSeconds, then released. */
import type { Action } from "../domain/decide/index.ts";
import { letLockGo as letLockGoOf } from "../domain/ledger-end.ts";
import type { Ledger, Run } from "../domain/ledger.ts";
import { leaseMsOf } from "../domain/lock-terms.ts";
import { writeLedger } from "./cas.ts";
import { decideAgain, type Context, type StepResult } from "./context.ts";
import type { LedgerRecord } from "./ports.ts";

type Of<K extends Action["do"]> = Extract<Action, { do: K }>;

/** lock.atLeastSeconds are over: as when a run ends without them. */
export async function letLockGo(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  { run }: Of<"letLockGo">,
): Promise<StepResult> {
  const lost = await writeLedger(c, key, record, letLockGoOf(ledger, run.runId));
  if (lost !== undefined) return lost;
  await release(c, key, ledger, run);
  return decideAgain("its lock is free");
}

/** Until when lock.atLeastSeconds keeps the locks of a run that ends now. */
export function keptUntilOf(c: Context, run: Run): { keptUntil?: number } {
  const { atLeastSeconds } = run.lock ?? {};
  if (atLeastSeconds === undefined || run.lockedAt === undefined) return {};
  const keptUntil = run.lockedAt + atLeastSeconds * 1000;
  return keptUntil > c.clock.now() ? { keptUntil } : {};
}

/** @param createdAt of its Job, ms, if that is still there */
export async function release(
  c: Context,
  key: string,
  ledger: Ledger,
  run: Run,
  createdAt?: number,
): Promise<void> {
  const launched = ledger.decisions.findLast(
    ({ tick, decision }) => tick === run.tick && decision === "Launched",
  );
  const since = run.lockedAt ?? createdAt ?? launched?.at;
  if (since !== undefined) c.observe.lockHeld({ ms: Math.max(0, c.clock.now() - since) });
  await c.onStep("ended", key);
  // A run that was rebuilt from a Job without these annotations has no lock that we know of.
  if (run.lockKey === "" || run.lockValue === "") return;
  void c.locks.release(run.lockKey, run.lockValue, leaseMsOf(run.lock));
  // CRASH WINDOW ended -> freed: a fence that names a run which is over is freed by the sweep, or by whoever wants it.
  await c.mutexes.freeAllOf(key, run);
}
