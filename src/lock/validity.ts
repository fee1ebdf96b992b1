import type { Clock } from "../clock.ts";

/** A point in time on both clocks, taken before the first byte of an attempt is sent. */
export interface Stamp {
  readonly wall: number;
  readonly monotonic: number;
}

export function stampOf(clock: Clock): Stamp {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/**
 * Milliseconds since the stamp by the clock that went further: the monotonic one stops while the machine is suspended,
 * the wall clock may be set back. A wall clock set forward costs a lock too early, never too late.
 */
export function elapsedSince(stamp: Stamp, clock: Clock): number {
  return Math.max(clock.monotonic() - stamp.monotonic, clock.now() - stamp.wall);
}

/**
 * Allowance for clocks that run at different rates and for the resolution of a Redis TTL: 1 % of the lease + 2 ms
 * (the algorithm's CLOCK_DRIFT, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
 */
export function driftOf(leaseMs: number): number {
  return leaseMs * 0.01 + 2;
}

/** A majority vouches for `value` on `key` until the grant runs out. Terminal: a grant never becomes longer. */
export interface Grant {
  readonly key: string;
  readonly value: string;
  readonly leaseMs: number;
  /** On `clock.monotonic()`. A suspended machine does not move that clock: ask `remainingMs` before an effect. */
  readonly validUntil: number;
  /** Milliseconds left by max(monotonic, wall) elapsed; zero or less when it has run out. */
  remainingMs(): number;
  isValid(): boolean;
}

/** @returns the grant (R3), or null when the lease was used up before the majority had answered */
export function grantFrom(
  entry: { readonly key: string; readonly value: string; readonly leaseMs: number },
  stamp: Stamp,
  clock: Clock,
): Grant | null {
  const { key, value, leaseMs } = entry;
  const usableMs = leaseMs - driftOf(leaseMs);
  const remainingMs = () => usableMs - elapsedSince(stamp, clock);
  if (remainingMs() <= 0) return null;
  return {
    key,
    value,
    leaseMs,
    validUntil: stamp.monotonic + usableMs,
    remainingMs,
    isValid: () => remainingMs() > 0,
  };
}
