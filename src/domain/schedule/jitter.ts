import { hash32 } from "../hash.ts";

/**
 * How long a tick is put off: whole seconds, at most `jitterSeconds`, and less than the gap to the next tick, so that
 * ticks stay in order. The hash of name and tick, so every replica knows it, and it does not favour any instant.
 */
export function delayWithin(
  jitterSeconds: number,
  gapSeconds: number,
  seed: string,
  tickSecond: number,
): number {
  const choices = Math.min(jitterSeconds + 1, gapSeconds);
  return choices <= 1 ? 0 : hash32(`${seed}|jitter|${tickSecond}`) % choices;
}
