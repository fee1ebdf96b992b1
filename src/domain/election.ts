/**
 * Rendezvous (highest random weight) hashing: every replica ranks the live replicas for a key without talking to the
 * others; when one goes, only its own keys move. Only an optimisation: a wrong view of who lives costs milliseconds.
 * Source: D. G. Thaler and C. V. Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
 */

import { hash32 } from "./hash.ts";

/**
 * How many members come before `self` for this key; 0 = acts first. A `self` that is not among the members (its own
 * membership has not been seen yet) counts as if it were.
 */
export function rankOf(self: string, members: Iterable<string>, key: string): number {
  const own = hash32(`${self}|${key}`);
  let rank = 0;
  for (const member of members) {
    if (member === self) continue;
    const weight = hash32(`${member}|${key}`);
    if (weight > own || (weight === own && member < self)) rank++;
  }
  return rank;
}

/**
 * How long the replica of this rank stands by after a tick, in ms. With many ticks due at once the first ranks need
 * longer to get to each of theirs, and a stand-by that is impatient only adds load; so the delay grows with the crowd.
 */
export function standByMs(rank: number, dueAtOnce: number, rankDelayMs: number): number {
  return rank * (rankDelayMs + Math.min(dueAtOnce * 3, 5_000));
}
