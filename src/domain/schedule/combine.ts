/** Ticks of several schedules together, and of a part of time only. */
import type { TickSource } from "./cron.ts";

/** Ticks of a union are counted one by one: up to here, which takes some tens of milliseconds. */
export const MAX_UNION_COUNT = 100_000;

/** Equal instants are one tick. None of the sources may count its ticks from where it is asked, as `@every` does. */
export function unionOf(sources: readonly TickSource[]): TickSource {
  const first = (of: (source: TickSource) => number | null): number | null => {
    let least: number | null = null;
    for (const source of sources) {
      const tick = of(source);
      if (tick !== null && (least === null || tick < least)) least = tick;
    }
    return least;
  };
  const firstFrom = (from: number): number | null => first((source) => source.firstFrom(from));
  return {
    firstFrom,
    robfigFrom: firstFrom,
    lastBetween(from, to) {
      const lasts = sources.map((source) => source.lastBetween(from, to) ?? -Infinity);
      const last = Math.max(...lasts);
      return last === -Infinity ? null : last;
    },
    countBetween(from, to, limit) {
      const most = Math.min(limit, MAX_UNION_COUNT);
      let count = 0;
      let tick = firstFrom(from);
      while (tick !== null && tick <= to && count < most) {
        count += 1;
        tick = firstFrom(tick + 1);
      }
      return count;
    },
  };
}

/**
 * The ticks of a source in [begin, end]. `chained`: its ticks count from where it is asked (`@every`), so it is asked
 * there and not at the beginning of the window.
 */
export function withinWindow(
  source: TickSource,
  begin: number,
  end: number,
  chained: boolean,
): TickSource {
  const start = (from: number): number => (chained ? from : Math.max(from, begin));

  function firstFrom(from: number): number | null {
    const before = chained && from < begin ? source.lastBetween(from, begin - 1) : null;
    const tick = source.firstFrom(before === null ? start(from) : before + 1);
    return tick !== null && tick <= end ? tick : null;
  }

  return {
    firstFrom,
    robfigFrom: firstFrom,
    lastBetween(from, to) {
      const tick = source.lastBetween(start(from), Math.min(to, end));
      return tick !== null && tick >= begin ? tick : null;
    },
    countBetween(from, to, limit) {
      const last = Math.min(to, end);
      if (!chained) return source.countBetween(start(from), last, limit);
      const before = source.countBetween(from, Math.min(last, begin - 1), Infinity);
      return Math.min(limit, source.countBetween(from, last, Infinity) - before);
    },
  };
}
