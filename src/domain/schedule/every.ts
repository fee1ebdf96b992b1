/**
 * Ticks of `@every`: robfig's constant delay, after + interval. They belong to no wall clock, only to the instant that
 * the chain starts from.
 */
import type { TickSource } from "./cron.ts";

export function everyTicks(interval: number): TickSource {
  // `from` is the second after the one the chain starts in.
  const firstFrom = (from: number): number => from - 1 + interval;
  const countAll = (from: number, to: number): number =>
    Math.max(0, Math.floor((to - (from - 1)) / interval));
  return {
    firstFrom,
    robfigFrom: firstFrom,
    lastBetween(from, to) {
      const count = countAll(from, to);
      return count === 0 ? null : from - 1 + count * interval;
    },
    countBetween: (from, to, limit) => Math.min(limit, countAll(from, to)),
  };
}
