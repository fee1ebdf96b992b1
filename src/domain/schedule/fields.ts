/**
 * A parsed cron expression as bit masks. Minutes and seconds need 60 bits and are kept as two halves of 30,
 * so that every mask is a small integer: no BigInt, no boxed number, a few words per schedule.
 */

/** A set of numbers 0..59: `low` holds 0..29, `high` holds 30..59. */
export interface SixtyBits {
  readonly low: number;
  readonly high: number;
}

export interface CronFields {
  readonly seconds: SixtyBits;
  readonly minutes: SixtyBits;
  /** Bit h for hour h. */
  readonly hours: number;
  /** Bit d - 1 for day d. */
  readonly daysOfMonth: number;
  /** Bit m for month m. */
  readonly months: number;
  /** Bit w for weekday w, 0 = Sunday. */
  readonly weekdays: number;
  /**
   * True when both day fields are restricted: then a day matches if EITHER does. robfig/cron decides it by a star
   * in the field, and a star with a step above 1 does not count as one.
   */
  readonly eitherDay: boolean;
}

const HALF = 30;

export function sixtyBits(values: Iterable<number>): SixtyBits {
  let low = 0;
  let high = 0;
  for (const v of values) {
    if (v < HALF) low |= 1 << v;
    else high |= 1 << (v - HALF);
  }
  return { low, high };
}

/** Smallest member >= from, or -1. `from` is 0..31. */
export function nextBit(mask: number, from: number): number {
  const rest = from > 31 ? 0 : (mask >>> from) << from;
  return rest === 0 ? -1 : 31 - Math.clz32(rest & -rest);
}

/** Largest member <= upTo, or -1. `upTo` is -1..31. */
export function previousBit(mask: number, upTo: number): number {
  const rest = upTo < 0 ? 0 : mask & (-1 >>> (31 - upTo));
  return rest === 0 ? -1 : 31 - Math.clz32(rest);
}

export function countBits(mask: number): number {
  let n = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) n++;
  return n;
}

export function hasSixty(bits: SixtyBits, value: number): boolean {
  return ((value < HALF ? bits.low >> value : bits.high >> (value - HALF)) & 1) === 1;
}

export function nextSixty(bits: SixtyBits, from: number): number {
  if (from < HALF) {
    const low = nextBit(bits.low, from);
    if (low >= 0) return low;
  }
  const high = nextBit(bits.high, from < HALF ? 0 : from - HALF);
  return high < 0 ? -1 : high + HALF;
}

export function previousSixty(bits: SixtyBits, upTo: number): number {
  if (upTo >= HALF) {
    const high = previousBit(bits.high, upTo - HALF);
    if (high >= 0) return high + HALF;
  }
  return previousBit(bits.low, upTo < HALF ? upTo : HALF - 1);
}

export function countSixty(bits: SixtyBits): number {
  return countBits(bits.low) + countBits(bits.high);
}

/** How many members are <= upTo (-1..59). */
export function countSixtyThrough(bits: SixtyBits, upTo: number): number {
  if (upTo < HALF) return countThrough(bits.low, upTo);
  return countBits(bits.low) + countThrough(bits.high, upTo - HALF);
}

/** How many members are <= upTo (-1..31). */
export function countThrough(mask: number, upTo: number): number {
  return upTo < 0 ? 0 : countBits(mask & (-1 >>> (31 - upTo)));
}
