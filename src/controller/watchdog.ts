/**
 * Keeps the locks of live runs. A run is live as long as the ledger says so, and it leaves the ledger only on live
 * evidence that its Job is over and its pods are gone; so whoever reads the ledger may renew.
 *
 * The replica that ranks first renews each third of the lease, and so does the one that launched, which knows of the run
 * first. The others renew each half of it as well: a replica that died a moment ago ranks first until its membership runs
 * out, which may take longer than the lease. A renewal too many costs one call per node and round, for all runs together.
 */
import { EventReason } from "../api/reasons.ts";
import type { Key } from "../api/names.ts";
import type { Clock, Timers } from "../clock.ts";
import { rankOf } from "../domain/election.ts";
import { findRun, type Ledger, type Run } from "../domain/ledger.ts";
import type { EventSink, Ledgers, Locks, Members, Observer, Owners } from "./ports.ts";

export interface WatchdogOptions {
  ledgers: Ledgers & { withRuns(): Iterable<Key> };
  owners: Owners;
  locks: Locks;
  members: Pick<Members, "live">;
  events: EventSink;
  observe: Pick<Observer, "lockRenewal">;
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
  /** Locks that this replica renews as the first in line. */
  held(): number;
}

interface Held {
  key: Key;
  run: Run;
  leaseMs: number;
  first: boolean;
}

interface Renewal {
  /** Monotonic, ms. */
  at: number;
  first: boolean;
}

const DEFAULT_LEASE_SECONDS = 30;
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
    run.ended !== true &&
    run.of === undefined &&
    run.lockKey !== "" &&
    run.lockValue !== ""
  );
}

export function createWatchdog(o: WatchdogOptions): Watchdog {
  const intervalMs = o.intervalMs ?? 1_000;
  /** By run id: the next one. */
  const renewals = new Map<string, Renewal>();
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
      const leaseSeconds = o.owners.cached(key)?.spec.lock?.leaseSeconds ?? DEFAULT_LEASE_SECONDS;
      const leaseMs = leaseSeconds * 1000;
      for (const run of contents.ledger.runs) {
        ours.add(run.runId);
        const launched = run.attempts.at(-1)?.by === o.process;
        if (!keepsItsLock(run, launched)) continue;
        const first = rank === 0 || launched;
        const at = renewals.get(run.runId)?.at ?? (first ? now : now + rank * HEAD_START_MS);
        renewals.set(run.runId, { at, first });
        if (at > now) continue;
        renewals.set(run.runId, { at: now + leaseMs / (first ? 3 : 2), first });
        entries.push({ key, run, leaseMs, first });
      }
    }
    for (const runId of renewals.keys()) if (!ours.has(runId)) renewals.delete(runId);
    return entries;
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
    const results = await o.locks.extendMany(
      entries.map(({ run, leaseMs }) => ({ key: run.lockKey, value: run.lockValue, leaseMs })),
    );
    const lost: Held[] = [];
    const counts = { renewed: 0, lost: 0, noQuorum: 0 };
    entries.forEach((entry, i) => {
      const result = results[i] ?? "noQuorum";
      counts[result]++;
      if (result === "lost") lost.push(entry);
      // Unknown: the lock may still be there, so try again with the next round rather than a third of a lease later.
      if (result !== "renewed") renewals.delete(entry.run.runId);
    });
    for (const outcome of ["renewed", "lost", "noQuorum"] as const) {
      if (counts[outcome] > 0) o.observe.lockRenewal({ outcome, count: counts[outcome] });
    }
    await Promise.all(lost.map(regain));
  }

  /** A lock that a majority has lost (restarted, wiped): the run lives, so it is taken anew if nobody else has it. */
  async function regain({ key, run, leaseMs, first }: Held): Promise<void> {
    // ORDER: the run may just have ended and its lock been released; only the ledger as it is now says that it lives.
    const live = await o.ledgers.read(key).catch(() => undefined);
    const contents = live?.contents;
    if (contents?.state !== "present") return;
    const current = findRun(contents.ledger, run.runId);
    if (current === undefined || !keepsItsLock(current)) return;
    const { outcome } = await o.locks.tryAcquire(run.lockKey, run.lockValue, leaseMs);
    if (outcome === "won") {
      renewals.set(run.runId, { at: o.clock.monotonic() + leaseMs / (first ? 3 : 2), first });
      o.observe.lockRenewal({ outcome: "regained", count: 1 });
      return;
    }
    const owner = o.owners.cached(key);
    if (outcome === "held" && owner !== undefined && first) {
      o.events.event(
        owner,
        "Warning",
        EventReason.LockLost,
        `The lock of job ${run.jobName} was lost and is held by somebody else; the job goes on`,
      );
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
      for (const { lockKey, lockValue } of runs) {
        if (lockKey !== "" && lockValue !== "")
          void o.locks.release(lockKey, lockValue, LONGEST_LEASE_MS);
      }
    },
    held: () => [...renewals.values()].filter(({ first }) => first).length,
    async [Symbol.asyncDispose]() {
      stopped = true;
      cancel?.();
    },
  };
}
