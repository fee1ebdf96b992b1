/**
 * Locks that nobody who could be a replica holds: a key without a time to live, put there by hand or by another program.
 * Every lock of ours runs out when nobody renews it, and only locks of runs are renewed, which the ledger knows. So one that
 * stays held for longer than any lease, while the ledger stands still, tells as much as no quorum does.
 */
import { EventReason } from "../api/reasons.ts";
import type { LockedCronJob } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import { keyOf } from "../api/names.ts";
import type { Ledger } from "../domain/ledger.ts";
import type { Context } from "./context.ts";
import type { LedgerRecord } from "./ports.ts";

export interface StuckLocks {
  /**
   * The lock was found held by somebody else. True when it has been for longer than `boundMs` with the ledger at this last
   * tick; once it was true it stays so until the lock is found free.
   */
  held(lockKey: string, lastTick: number, boundMs: number): boolean;
  free(lockKey: string): void;
}

/** What was not asked for so long is forgotten: locks of single ticks (policy Allow) are never asked for again, ms. */
const FORGET_MS = 7_200_000;
const SWEEP_AT = 256;
/** Beyond the lease, for the replies and quarantines of its nodes. */
const MARGIN = 1.5;

export function createStuckLocks(clock: Pick<Clock, "monotonic">): StuckLocks {
  const known = new Map<
    string,
    { lastTick: number; since: number; askedAt: number; stuck: boolean }
  >();
  let sweepAt = SWEEP_AT;

  function sweep(now: number): void {
    if (known.size < sweepAt) return;
    for (const [key, { askedAt }] of known) if (now - askedAt > FORGET_MS) known.delete(key);
    sweepAt = Math.max(SWEEP_AT, known.size * 2);
  }

  return {
    held(lockKey, lastTick, boundMs) {
      const now = clock.monotonic();
      const old = known.get(lockKey);
      const stands = old !== undefined && (old.stuck || old.lastTick === lastTick);
      const since = stands ? old.since : now;
      const stuck = (stands && old.stuck) || now - since > boundMs;
      known.set(lockKey, { lastTick, since, askedAt: now, stuck });
      sweep(now);
      return stuck;
    },
    free: (lockKey) => void known.delete(lockKey),
  };
}

/** Whether the lock that was found held is stuck. Says so, with the way out. */
export async function isStuck(
  c: Context,
  owner: LockedCronJob,
  record: LedgerRecord,
  ledger: Ledger,
  lockKey: string,
): Promise<boolean> {
  const leaseMs = (owner.spec.lock?.leaseSeconds ?? 30) * 1000;
  const boundMs = MARGIN * Math.max(leaseMs, c.electionLeaseMs());
  if (!c.stuckLocks.held(lockKey, ledger.lastTick, boundMs)) return false;
  // ORDER: the ledger as it is now. By an old copy a run that lives and keeps its lock would go unseen.
  const { namespace, name } = owner.metadata;
  const live = await c.ledgers.read(keyOf(namespace, name));
  if (live?.resourceVersion !== record.resourceVersion) return false;
  const message =
    `The lock ${lockKey} is held by nobody that the ledger knows, for longer than any lease: it counts as no quorum. ` +
    "Look at the key on the Redis nodes (TTL, GET) and delete it (DEL)";
  c.events.event(owner, "Warning", EventReason.LockStuck, message);
  return true;
}
