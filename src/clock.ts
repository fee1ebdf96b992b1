/**
 * Time as a parameter. `now` is wall-clock milliseconds since the epoch (what ticks are measured in);
 * `monotonic` is milliseconds on a clock that never goes back (what durations are measured in).
 */
export interface Clock {
  now(): number;
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** Waiting as a parameter: calls `fn` once, `ms` from now. The function returned calls it off. */
export interface Timers {
  after(ms: number, fn: () => void): () => void;
}

export const systemTimers: Timers = {
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
};
