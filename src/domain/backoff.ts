/** Exponential back-off in ms without jitter: base, 2·base, 4·base … at most max. `failures` counts from 1. */
export function backoffMs(failures: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
}

/**
 * How soon to try again for something that is late by `lateMs` already, ms: an eighth of that, from `minMs` to `maxMs`. The
 * pauses grow by themselves, and nobody has to remember how often it was tried.
 */
export function pauseWhenLateMs(lateMs: number, minMs: number, maxMs: number): number {
  return Math.min(maxMs, Math.max(minMs, lateMs / 8));
}
