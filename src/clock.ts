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
