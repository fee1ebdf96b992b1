/**
 * Elections: a lock of Redis per tick, taken when the tick's launch begins. In a crowd the locks of the ticks that come next
 * are taken along ahead, with one call per node for all of them; each launch then finds its own already there.
 *
 * What is held ahead and not used is given back soon: until then no other replica could launch that tick.
 */
import { jobName, keyOf, type Key } from "../api/names.ts";
import type { LockedCronJob } from "../api/types.ts";
import type { Timers } from "../clock.ts";
import type { Action } from "../domain/decide/index.ts";
import { manualJobName } from "../domain/manual.ts";
import type { Schedule } from "../domain/schedule/index.ts";
import type { Locks } from "./ports.ts";

/** A tick that this replica goes for. */
export interface Candidate {
  key: Key;
  runId: string;
  jobName: string;
  lockKey: string;
}

export interface Election {
  outcome: "won" | "held" | "noQuorum";
  /** Run id and a nonce: what the lock holds when it was won. */
  lockValue: string;
  /** Of the lock when it was taken, ms. */
  leaseMs: number;
  isValid(): boolean;
}

export interface Elections {
  elect(candidate: Candidate): Promise<Election>;
  /** Gives back what is held ahead. */
  close(): void;
}

/** So many ticks are held up, until their locks run out, when a replica dies: no more than it works on at the same time. */
const AHEAD = 32;
/** What is not used within this share of its lease is given back. */
const UNUSED_SHARE = 1 / 3;

export function createElections(o: {
  locks: Pick<Locks, "tryAcquire" | "release">;
  timers: Timers;
  /** In [0, 1), as Math.random. */
  random: () => number;
  leaseMs(): number;
  /** The ticks that this replica goes for next, in order, of at most so many keys, without those that are passed over. */
  next(count: number, passOver: (key: Key) => boolean): Candidate[];
}): Elections {
  /** By lock key. */
  const ahead = new Map<string, Held>();

  async function hold({ runId, lockKey }: Candidate): Promise<Election> {
    const lockValue = `${runId}#${Math.floor(o.random() * 2 ** 48).toString(36)}`;
    const leaseMs = o.leaseMs();
    const { outcome, isValid } = await o.locks.tryAcquire(lockKey, lockValue, leaseMs);
    return { outcome, lockValue, leaseMs, isValid };
  }

  function holdAhead(candidates: readonly Candidate[]): void {
    const fresh = candidates.filter(({ lockKey }) => !ahead.has(lockKey));
    if (fresh.length === 0) return;
    // ORDER: all in one turn of the event loop. That is what makes one call per node of them.
    const held = fresh.map((candidate) => ({ candidate, election: hold(candidate) }));
    for (const one of held) ahead.set(one.candidate.lockKey, one);
    o.timers.after(o.leaseMs() * UNUSED_SHARE, () => held.forEach(giveBack));
  }

  /** To find out about a tick is work, and of those held ahead it is known. */
  function holdsOneOf(): (key: Key) => boolean {
    const keys = new Set(Array.from(ahead.values(), ({ candidate }) => candidate.key));
    return (key) => keys.has(key);
  }

  function giveBack(unused: Held): void {
    const { lockKey } = unused.candidate;
    if (ahead.get(lockKey) !== unused) return;
    ahead.delete(lockKey);
    void unused.election.then((election) => release(lockKey, election));
  }

  function release(lockKey: string, { outcome, lockValue, leaseMs }: Election): void {
    if (outcome === "won") void o.locks.release(lockKey, lockValue, leaseMs);
  }

  return {
    async elect(candidate) {
      const { lockKey, runId } = candidate;
      const prepared = ahead.get(lockKey);
      ahead.delete(lockKey);
      const held = prepared ?? { candidate, election: hold(candidate) };
      if (ahead.size < AHEAD / 2) holdAhead(o.next(AHEAD, holdsOneOf()));
      const election = await held.election;
      if (prepared === undefined) return election;
      const ours = held.candidate.runId === runId;
      if (ours && election.outcome === "won" && election.isValid()) return election;
      // Of another tick, run out, or somebody else's when it was asked for: it may be another answer now.
      release(lockKey, election);
      return hold(candidate);
    },
    close() {
      for (const held of ahead.values()) giveBack(held);
    },
  };
}

interface Held {
  candidate: Candidate;
  election: Promise<Election>;
}

export function candidateOf(
  owner: LockedCronJob,
  asked: Pick<Extract<Action, { do: "launch" }>, "tick" | "manual" | "beside">,
  schedule: Pick<Schedule, "subMinute">,
  lockPrefix: string,
): Candidate {
  const { namespace, name, uid } = owner.metadata;
  const { tick, manual } = asked;
  const job =
    manual === undefined
      ? jobName(name, tick, schedule.subMinute)
      : manualJobName(name, manual, tick);
  return {
    key: keyOf(namespace, name),
    runId: `${job}.${uid.slice(0, 8)}`,
    jobName: job,
    lockKey: `${lockPrefix}:${namespace}/${name}${ownLock(owner, asked, job)}`,
  };
}

/** One lock per LockedCronJob; runs that exclude no others have one each. */
function ownLock(
  { spec }: LockedCronJob,
  { tick, manual, beside }: Parameters<typeof candidateOf>[1],
  job: string,
): string {
  if (manual !== undefined) return beside === true ? `@${job}` : "";
  return spec.concurrencyPolicy === "Allow" ? `@${tick / 1000}` : "";
}
