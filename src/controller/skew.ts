/**
 * How far this replica's wall clock is from the API server's. Ticks are measured on the wall clock, so a replica whose
 * clock is ahead would take ticks of the future, and the ledger would call everything before them decided.
 *
 * The server tells its time with each answer (the Date header, RFC 9110: whole seconds, cut off). An answer that was
 * made between two instants of our monotonic clock ties the server's clock to that one; so a wall clock that is set ahead
 * or back shows at once, between two answers as well.
 */
import type { Clock } from "../clock.ts";

/** An answer of the API server. */
export interface ServerTime {
  /** What its Date header says, ms since the epoch. */
  date: number;
  /** On our monotonic clock, ms: before the request was sent, and when its answer began. */
  sentAt: number;
  receivedAt: number;
}

export interface SkewMeter {
  observe(answer: ServerTime): void;
  /**
   * By how much our clock is proven to be ahead (positive) or behind (negative), ms. 0 within the precision of a second
   * and a round trip, and before the first answer.
   */
  skewMs(): number;
}

/** What a Date header leaves open, ms. */
const DATE_PRECISION_MS = 1_000;

export function createSkewMeter(clock: Clock): SkewMeter {
  /** The server's clock less our monotonic one: at the least, at the most. */
  let bounds: { least: number; most: number } | undefined;

  return {
    observe({ date, sentAt, receivedAt }) {
      if (Number.isNaN(date)) return;
      bounds = { least: date - receivedAt, most: date + DATE_PRECISION_MS - sentAt };
    },
    skewMs() {
      if (bounds === undefined) return 0;
      const ours = clock.now() - clock.monotonic();
      if (ours > bounds.most) return ours - bounds.most;
      return ours < bounds.least ? ours - bounds.least : 0;
    },
  };
}
