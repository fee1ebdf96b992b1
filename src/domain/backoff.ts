/** Exponential back-off in ms without jitter: base, 2·base, 4·base … at most max. `failures` counts from 1. */
export function backoffMs(failures: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
}
