import type { Snapshot } from "./types.ts";

/** Beyond this a clock cannot be trusted with ticks. Clocks that are kept by NTP differ by milliseconds. */
export const MAX_CLOCK_SKEW_MS = 30_000;
/** How often a replica whose clock is wrong looks whether it still is, ms. */
export const CLOCK_POLL_MS = 5_000;

export function isClockWrong(s: Pick<Snapshot, "clockSkewMs">): boolean {
  return Math.abs(s.clockSkewMs) > MAX_CLOCK_SKEW_MS;
}

/** What is wrong with a clock, and the way out. */
export function clockSkewMessage(skewMs: number): string {
  const by = `${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? "ahead of" : "behind"}`;
  return `this replica's clock is ${by} the API server's: it takes no ticks until both agree (NTP on the node)`;
}
