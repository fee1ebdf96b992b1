/**
 * Who holds a mutex, and when it may be taken from him. The fence of a mutex names a run from before the run's first
 * attempt until the run is over; it is taken off only by compare-and-set on the very version that was judged.
 *
 * RULE: a fence is freed only when the holder's ledger, read after the fence, says that the run is over; or does not know
 * it, and neither a Job of it that runs nor a pod of it that may live is there. A run that its ledger does not know never
 * comes back: a claim bears a lock value of its own, and is in the ledger before its first fence is taken.
 */
import { splitKey, type Key } from "../api/names.ts";
import { holderOf, leaseMsOf, mutexLockKey, parseHolder } from "../domain/lock-terms.ts";
import { isOver as runIsOver, type Ledger, type Run } from "../domain/ledger.ts";
import type { Jobs, Ledgers, Locks, MutexFences, MutexRecord } from "./ports.ts";

/** As spec.lock.leaseSeconds allows: the terms of a run that is gone are not known. */
const LONGEST_LEASE_MS = 3_600_000;

export interface MutexBook {
  readonly fences: MutexFences;
  /** What keeps a waiting run from its mutexes, by the caches alone. */
  busyOn(key: Key, ledger: Ledger, run: Run): { mutex: string } | undefined;
  /** The caches know its run, and not that it is over. */
  livesByCache(holder: string): boolean;
  /** Linearizable. ORDER: after the fence that names the holder was read. */
  isOver(holder: string): Promise<boolean>;
  /**
   * Frees this very version, and what its holder has left in Redis; rejects with Conflict when it has moved on. ORDER: only
   * after isOver() said so.
   */
  free(record: MutexRecord): Promise<MutexRecord>;
  /**
   * Frees everything that the run holds, in the cluster and in Redis. ORDER: only after the ledger says that it is over.
   * Never rejects: what could not be freed is found by the sweep, or by whoever wants it.
   */
  freeAllOf(key: Key, run: Run): Promise<void>;
  lockKey(mutex: string): string;
}

export function createMutexBook(o: {
  fences: MutexFences;
  ledgers: Pick<Ledgers, "cached" | "read">;
  jobs: Pick<Jobs, "read" | "hasLivePodsNamed">;
  locks: Pick<Locks, "release">;
  lockPrefix: string;
}): MutexBook {
  const { fences } = o;

  function livesByCache(holder: string): boolean {
    const parsed = parseHolder(holder);
    if (parsed === undefined) return false;
    const contents = o.ledgers.cached(parsed.key)?.contents;
    if (contents?.state !== "present") return false;
    const run = contents.ledger.runs.find((r) => r.lockValue === parsed.lockValue);
    return run !== undefined && !runIsOver(run);
  }

  async function isOver(holder: string): Promise<boolean> {
    const parsed = parseHolder(holder);
    // Somebody else's writing: nobody can tell what it stands for.
    if (parsed === undefined) return false;
    const contents = (await o.ledgers.read(parsed.key))?.contents;
    if (contents?.state === "newer") return false;
    if (contents?.state === "present") {
      const run = contents.ledger.runs.find((r) => r.lockValue === parsed.lockValue);
      if (run !== undefined) return runIsOver(run);
    }
    // Over and off the ledger; or the ledger went with its LockedCronJob, or was lost, while pods of the run still live.
    const { namespace } = splitKey(parsed.key);
    const job = await o.jobs.read(namespace, parsed.jobName);
    if (job?.runId === parsed.runId && job.outcome === undefined) return false;
    return !(await o.jobs.hasLivePodsNamed(namespace, parsed.jobName));
  }

  async function free(record: MutexRecord): Promise<MutexRecord> {
    const next = await freeFence(record);
    // Whoever ended the run died before he came to this, else its fence would be free: nobody else releases the lock.
    const holder = parseHolder(record.holder ?? "");
    if (holder !== undefined) {
      void o.locks.release(lockKey(record.mutex), holder.lockValue, LONGEST_LEASE_MS);
    }
    return next;
  }

  async function freeFence(record: MutexRecord): Promise<MutexRecord> {
    const { mutex, token } = record;
    const next = await fences.write(mutex, record, { holder: undefined, token });
    // Somebody has deleted it while it was held: it went with this write, but its token must not begin anew.
    if (fences.cached(mutex) === undefined) {
      return fences.write(mutex, undefined, { holder: undefined, token });
    }
    return next;
  }

  const lockKey = (mutex: string): string => mutexLockKey(o.lockPrefix, mutex);

  return {
    fences,
    livesByCache,
    isOver,
    free,
    lockKey,
    busyOn(key, ledger, run) {
      const wanted = run.lock?.mutexes ?? [];
      const holder = holderOf(key, run.lockValue);
      for (const mutex of wanted) {
        const fence = fences.cached(mutex);
        // A foreign one bears no label of ours, so no watch would tell that it is gone: it is looked at again and again.
        if (fence?.holder === undefined || fence.foreign || fence.holder === holder) continue;
        if (livesByCache(fence.holder)) return { mutex };
      }
      // Its elder brothers go first: ticks keep their order.
      const elder = ledger.runs.slice(0, ledger.runs.indexOf(run));
      const shared = elder
        .filter((r) => r.waiting !== undefined)
        .flatMap((r) => r.lock?.mutexes ?? [])
        .find((mutex) => wanted.includes(mutex));
      return shared === undefined ? undefined : { mutex: shared };
    },
    async freeAllOf(key, run) {
      const holder = holderOf(key, run.lockValue);
      const leaseMs = leaseMsOf(run.lock);
      for (const mutex of run.lock?.mutexes ?? []) {
        if (run.lockValue === "") return;
        void o.locks.release(lockKey(mutex), run.lockValue, leaseMs);
        try {
          const fence = await fences.read(mutex);
          if (fence?.holder === holder) await freeFence(fence);
        } catch {
          continue;
        }
      }
    },
  };
}
