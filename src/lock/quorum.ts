import { LockConfigError } from "./errors.ts";

/** A majority of the *configured* nodes (R1), however many of them are connected: floor(N/2) + 1. */
export function quorumOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** How many nodes said what about one key so far; the rest is still to answer. */
export interface Tally {
  /** granted, or our value was found */
  readonly yes: number;
  /** answered, and the answer was not yes: somebody else's, or nothing there */
  readonly no: number;
  /** surely or possibly without effect: unreachable, refused, timed out */
  readonly mute: number;
}

/**
 * What is known of an acquisition (R2). `held` needs a working majority of answers: the caller may wait or give way;
 * `noQuorum` says that the backend itself is not there. `null`: it can still go either way.
 */
export function judgeAcquire(tally: Tally, nodes: number): "acquired" | "held" | "noQuorum" | null {
  const quorum = quorumOf(nodes);
  const pending = nodes - tally.yes - tally.no - tally.mute;
  const answered = tally.yes + tally.no;
  if (tally.yes >= quorum) return "acquired";
  if (answered + pending < quorum) return "noQuorum";
  if (tally.yes + pending < quorum && answered >= quorum) return "held";
  return null;
}

/**
 * What is known of a renewal or a release: is our value (still) on a majority? `gone` only when so many nodes answered
 * without it that no majority can have it; mute nodes may.
 */
export function judgePresence(tally: Tally, nodes: number): "present" | "gone" | "unknown" | null {
  const quorum = quorumOf(nodes);
  const pending = nodes - tally.yes - tally.no - tally.mute;
  if (tally.yes >= quorum) return "present";
  if (tally.no > nodes - quorum) return "gone";
  if (tally.yes + pending < quorum && tally.no + pending <= nodes - quorum) return "unknown";
  return null;
}

/** Refuses what cannot tolerate a fault although it looks as if it could. */
export function checkNodeCount(count: number): void {
  if (count === 0) {
    throw new LockConfigError(
      "NoNodes",
      "nodes",
      "is empty; give the URLs of the independent Redis masters, best three or five",
    );
  }
  if (count === 2) {
    throw new LockConfigError(
      "TwoNodes",
      "nodes",
      "has 2 entries: a majority of two is both, so losing either stops everything; use 1, 3 or 5",
    );
  }
}
