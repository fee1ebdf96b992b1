/**
 * Keeps the locks of live runs. A run is live as long as the ledger says so, and it leaves the ledger only on live
 * evidence that its Job is over and its pods are gone; so whoever reads the ledger may renew.
 *
 * The replica that ranks first renews each third of the lease; the one that launched, which knows of the run first, renews
 * once at the beginning, for the lease of its election is short. The next rank renews each half of it and the rest two thirds of it, as well: a
 * replica that died a moment ago, or is cut off from Redis, ranks first until its membership runs out, which may take
 * longer than the lease. A renewal too many costs one call per node and round, for all runs together.
 */
import { EventReason } from "../api/reasons.ts";
import type { Key } from "../api/names.ts";
import type { Clock, Timers } from "../clock.ts";
import { rankOf } from "../domain/election.ts";
import { findRun, isOver, type Ledger, type Run } from "../domain/ledger.ts";
import { leaseMsOf, mutexLockKey } from "../domain/lock-terms.ts";
import type { EventSink, Ledgers, Locks, Members, Observer, Owners } from "./ports.ts";

export interface WatchdogOptions {
  ledgers: Ledgers & { withRuns(): Iterable<Key> };
  owners: Owners;
  locks: Locks;
  members: Pick<Members, "live">;
  events: EventSink;
  observe: Pick<Observer, "lockRenewal" | "lockTakenOver">;
  lockPrefix: string;
  /** A lock of a run is held by somebody else: what spec.lock.onLost says, and the event. Told once by the first in line. */
  onLost(key: Key, run: Run, lockKey: string): void;
  clock: Clock;
  timers: Timers;
  replica: string;
  /** `<replica>/<nonce>`. */
  process: string;
  /** The ledgers' watch has stood still for a while. */
  isStale?: () => boolean;
  /** How often to look for locks to renew, ms. */
  intervalMs?: number;
}

export interface Watchdog extends AsyncDisposable {
  start(): void;
  /** One round: renews everything that is due. */
  round(): Promise<void>;
  /** The ledger is gone: with its LockedCronJob, whose locks must not hold up a namesake, or by hand, to be made anew. */
  letGo(key: Key, last: Ledger): void;
  /** Runs whose locks this replica renews as the first in line. */
  held(): number;
  /** How long the locks of a run stay if nobody renews them any more, wall clock ms; undefined: not known to this replica. */
  validUntil(runId: string): number | undefined;
}

/** One lock of a run: its own, or that of a mutex. */
interface Held {
  key: Key;
  run: Run;
  lockKey: string;
  leaseMs: number;
  /** Share of the lease after which this replica renews. */
  share: number;
  rank: number;
  first: boolean;
  /** By the replica that launched, for the first time: from here on it has the lease of a run. */
  fresh: boolean;
}

interface Renewal {
  key: Key;
  run: Run;
  /** Monotonic, ms. */
  at: number;
  rank: number;
  first: boolean;
  /** Monotonic, ms: the locks are there until then at least. */
  validUntil?: number;
}

/** So many, in their order, see to it that the lock of a run that has ended is gone: the first may be the one that died. */
const ENDERS = 2;
/** Of the lease, by rank. */
const SHARES = [1 / 3, 1 / 2];
const LAST_SHARE = 2 / 3;
/** As spec.lock.leaseSeconds allows; bounds how long a node that is away is waited for. */
const LONGEST_LEASE_MS = 3_600_000;
/** A run that this replica has just learnt of is left to the ranks before it for so long, per rank, ms. */
const HEAD_START_MS = 1_000;

/**
 * Before its Job exists only the launcher renews a run's lock, which has the short lease of its election until then: if
 * the launcher dies, the lock is to run out.
 */
function keepsItsLock(run: Run, launched = false): boolean {
  return (
    (run.jobUID !== undefined || launched) &&
    !isOver(run) &&
    run.of === undefined &&
    run.lockKey !== "" &&
    run.lockValue !== ""
  );
}

export function createWatchdog(o: WatchdogOptions): Watchdog {
  const intervalMs = o.intervalMs ?? 1_000;
  /** By run id: the next one. */
  const renewals = new Map<string, Renewal>();
  /** `<run id> <lock key>` of locks whose loss was told. */
  const told = new Set<string>();
  let cancel: (() => void) | undefined;
  let stopped = false;

  function due(): Held[] {
    const now = o.clock.monotonic();
    const members = o.members.live();
    const entries: Held[] = [];
    const ours = new Set<string>();
    for (const key of o.ledgers.withRuns()) {
      const rank = rankOf(o.replica, members, key);
      const contents = o.ledgers.cached(key)?.contents;
      if (contents?.state !== "present") continue;
      for (const run of contents.ledger.runs) {
        ours.add(run.runId);
        const launched = run.attempts.at(-1)?.by === o.process;
        if (!keepsItsLock(run, launched)) continue;
        const before = renewals.get(run.runId);
        const first = rank === 0 || (launched && before === undefined);
        if (rank === 0 && before?.first === false && !launched) takenOver(key, run);
        const at = before?.at ?? (first ? now : now + rank * HEAD_START_MS);
        renewals.set(run.runId, { ...before, key, run, at, rank, first });
        if (at > now) continue;
        const share = first ? (SHARES[0] ?? LAST_SHARE) : (SHARES[rank] ?? LAST_SHARE);
        const leaseMs = leaseMsOf(run.lock);
        renewals.set(run.runId, { ...before, key, run, at: now + leaseMs * share, rank, first });
        const fresh = launched && before === undefined;
        for (const lockKey of lockKeysOf(run)) {
          entries.push({ key, run, lockKey, leaseMs, share, rank, first, fresh });
        }
      }
    }
    for (const [runId, renewal] of renewals) {
      if (ours.has(runId)) continue;
      renewals.delete(runId);
      for (const id of told) if (id.startsWith(`${runId} `)) told.delete(id);
      if (renewal.rank < ENDERS) hasEnded(renewal);
    }
    return entries;
  }

  /**
   * Whoever ends a run releases its lock; unless he dies in between, or the answer to his write is lost. Then the lock would
   * hold up the next run until its lease is over, which may be an hour.
   */
  function hasEnded({ key, run }: Renewal): void {
    // A ledger that was deleted by hand tells nothing of its runs.
    if (o.ledgers.cached(key)?.contents.state !== "present") return;
    void o.locks.release(run.lockKey, run.lockValue, leaseMsOf(run.lock));
  }

  function lockKeysOf({ lockKey, lock }: Run): string[] {
    const mutexes = lock?.mutexes ?? [];
    return [lockKey, ...mutexes.map((mutex) => mutexLockKey(o.lockPrefix, mutex))];
  }

  function acquired(locks: readonly Held[]): void {
    const [held] = locks;
    const owner = held === undefined ? undefined : o.owners.cached(held.key);
    if (held === undefined || owner === undefined) return;
    const { run, leaseMs } = held;
    const keys = locks.map(({ lockKey }) => lockKey).join(", ");
    const message = `Job ${run.jobName} holds ${keys} with a lease of ${leaseMs / 1000} s, token ${run.token}`;
    o.events.event(owner, "Normal", EventReason.LockAcquired, message);
  }

  /** Those who ranked before this replica are gone. */
  function takenOver(key: Key, run: Run): void {
    o.observe.lockTakenOver();
    const owner = o.owners.cached(key);
    if (owner === undefined) return;
    const message = `Replica ${o.replica} renews the lock of job ${run.jobName} from now on`;
    o.events.event(owner, "Normal", EventReason.LockTakenOver, message);
  }

  /**
   * Those that live by the ledger as it is now. For whoever sees no news a run never ends, and he would keep its lock from
   * all others; but while nobody can be asked, a run counts as alive.
   */
  async function confirmed(entries: readonly Held[]): Promise<Held[]> {
    const byKey = Map.groupBy(entries, ({ key }) => key);
    const live = await Promise.all(
      [...byKey].map(async ([key, of]) => {
        try {
          const contents = (await o.ledgers.read(key))?.contents;
          const ledger = contents?.state === "present" ? contents.ledger : undefined;
          return of.filter(({ run }) => {
            const current = ledger === undefined ? undefined : findRun(ledger, run.runId);
            return current !== undefined && keepsItsLock(current);
          });
        } catch {
          return of;
        }
      }),
    );
    return live.flat();
  }

  async function round(): Promise<void> {
    const known = due();
    const entries = known.length > 0 && o.isStale?.() === true ? await confirmed(known) : known;
    if (entries.length === 0) return;
    const asked = o.clock.monotonic();
    const results = await o.locks.extendMany(
      entries.map(({ run, lockKey, leaseMs }) => ({ key: lockKey, value: run.lockValue, leaseMs })),
    );
    const lost: Held[] = [];
    const counts = { renewed: 0, lost: 0, noQuorum: 0 };
    entries.forEach((entry, i) => {
      const result = results[i] ?? "noQuorum";
      counts[result]++;
      if (result === "lost") lost.push(entry);
      else if (result === "renewed") kept(entry, asked);
      // Unknown: the lock may still be there, so try again with the next round rather than a third of a lease later.
      if (result !== "renewed") renewals.delete(entry.run.runId);
    });
    for (const outcome of ["renewed", "lost", "noQuorum"] as const) {
      if (counts[outcome] > 0) o.observe.lockRenewal({ outcome, count: counts[outcome] });
    }
    const fresh = Map.groupBy(
      entries.filter((entry) => entry.fresh),
      ({ run }) => run.runId,
    );
    for (const [runId, locks] of fresh) if (renewals.has(runId)) acquired(locks);
    await Promise.all(lost.map(regain));
  }

  function kept({ run, leaseMs }: Held, asked: number): void {
    const renewal = renewals.get(run.runId);
    if (renewal !== undefined) {
      renewals.set(run.runId, { ...renewal, validUntil: asked + leaseMs });
    }
  }

  /** A lock that a majority has lost (restarted, wiped): the run lives, so it is taken anew if nobody else has it. */
  async function regain(held: Held): Promise<void> {
    const { key, run, lockKey, leaseMs, share, rank, first } = held;
    // ORDER: the run may just have ended and its lock been released; only the ledger as it is now says that it lives.
    const live = await o.ledgers.read(key).catch(() => undefined);
    const contents = live?.contents;
    if (contents?.state !== "present") return;
    const current = findRun(contents.ledger, run.runId);
    if (current === undefined || !keepsItsLock(current)) return;
    const asked = o.clock.monotonic();
    const { outcome } = await o.locks.tryAcquire(lockKey, run.lockValue, leaseMs);
    const id = `${run.runId} ${lockKey}`;
    // Taken or not, there is nothing more to do before the next renewal is due.
    if (outcome !== "noQuorum") {
      const at = o.clock.monotonic() + leaseMs * share;
      renewals.set(run.runId, { key, run, at, rank, first });
    }
    if (outcome === "won") {
      kept(held, asked);
      told.delete(id);
      o.observe.lockRenewal({ outcome: "regained", count: 1 });
    } else if (outcome === "held" && first && !told.has(id)) {
      told.add(id);
      o.onLost(key, run, lockKey);
    }
  }

  async function loop(): Promise<void> {
    try {
      await round();
    } finally {
      if (!stopped) cancel = o.timers.after(intervalMs, () => void loop());
    }
  }

  return {
    start() {
      void loop();
    },
    round,
    letGo(key, { owner, runs }) {
      if (o.owners.cached(key)?.metadata.uid === owner) return;
      for (const run of runs) {
        if (run.lockKey === "" || run.lockValue === "") continue;
        // Not its mutexes: they exclude others as long as its pods live, and the sweep sees to their fences.
        void o.locks.release(run.lockKey, run.lockValue, LONGEST_LEASE_MS);
      }
    },
    held: () => [...renewals.values()].filter(({ first }) => first).length,
    validUntil(runId) {
      const until = renewals.get(runId)?.validUntil;
      return until === undefined ? undefined : o.clock.now() + until - o.clock.monotonic();
    },
    async [Symbol.asyncDispose]() {
      stopped = true;
      cancel?.();
    },
  };
}
