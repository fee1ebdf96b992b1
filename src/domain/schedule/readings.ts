/**
 * Ticks by what the wall clock shows, for the policies that are not robfig/cron's walk. Each is one sentence:
 *
 *   WallClock  runs whenever the clock shows a matching time: a time that is skipped does not run, one that comes twice
 *              runs twice.
 *   RunOnce    runs each matching time once, when the clock first shows it or jumps past it: a time that is skipped runs
 *              right after the jump, one that comes twice runs the first time.
 *
 * A schedule of all hours (`*` or its like in the hour field) is one of intervals, not of times of day: RunOnce is
 * WallClock for it, so that "every 15 minutes" does not pause for the hour that comes twice.
 */
import type { TickSource } from "./cron.ts";
import type { CronFields } from "./fields.ts";
import { YEARS_AHEAD } from "./walk.ts";
import { canMatch, countMatches, matchesAllHours, nextMatch, previousMatch } from "./wall.ts";
import { dateOfDay, dayOfDate, SECONDS_PER_DAY, yearOf } from "./civil.ts";
import type { Span, Zone } from "./zone.ts";

/** Offsets of the tz database are within 16 hours of UTC, so a clock that is put back shows nothing older than this again. */
const LOOK_BACK = 32 * 3600;

export function readingTicks(
  f: CronFields,
  zone: Zone,
  policy: "WallClock" | "RunOnce",
): TickSource {
  const possible = canMatch(f);
  const once = policy === "RunOnce" && !matchesAllHours(f);

  /** The first reading that counts in a span, which may be one that was skipped, or come after those that were shown before. */
  function firstReading(span: Span): number {
    return once && span.start !== -Infinity ? shownBefore(zone, span) : span.start + span.offset;
  }

  /** The first reading that counts at or after an instant of the span. */
  function readingFrom(span: Span, from: number): number {
    if (from - span.start > LOOK_BACK) return from + span.offset;
    const first = firstReading(span);
    return from <= span.start ? first : Math.max(first, from + span.offset);
  }

  /** The instant at which a reading runs: readings that were skipped run when the clock has jumped past them. */
  const instantOf = (span: Span, reading: number): number =>
    Math.max(span.start, reading - span.offset);

  function firstFrom(from: number): number | null {
    if (!possible) return null;
    const end = endOfSearch(from + zone.spanAt(from).offset);
    let at = from;
    for (;;) {
      const span = zone.spanAt(at);
      const match = nextMatch(f, readingFrom(span, at), YEARS_AHEAD);
      if (match === null || match >= end) return null;
      if (match < span.end + span.offset) return instantOf(span, match);
      at = span.end;
    }
  }

  return {
    firstFrom,
    robfigFrom: firstFrom,
    lastBetween(from, to) {
      let at = to;
      if (!possible) return null;
      while (at >= from) {
        const span = zone.spanAt(at);
        const low = readingFrom(span, from);
        const match = previousMatch(f, at + span.offset, low - 1);
        if (match !== null) return instantOf(span, match);
        at = span.start - 1;
      }
      return null;
    },
    countBetween(from, to, limit) {
      let count = 0;
      let at = from;
      if (!possible) return 0;
      while (at <= to && count < limit) {
        const span = zone.spanAt(at);
        const last = Math.min(to, span.end - 1) + span.offset;
        const low = readingFrom(span, at);
        // Everything up to the reading of the span's first second runs in that second, as one tick.
        const start = span.start + span.offset;
        const together = at <= span.start && low <= start && countMatches(f, low - 1, start) > 0;
        count += together ? 1 : 0;
        count += countMatches(f, Math.max(low - 1, at <= span.start ? start : low - 1), last);
        at = span.end;
      }
      return Math.min(count, limit);
    },
  };
}

/** One past the latest reading that the clock has shown or jumped over when a span begins. */
function shownBefore(zone: Zone, span: Span): number {
  let shown = -Infinity;
  for (let at = span.start; at > span.start - LOOK_BACK && at !== -Infinity;) {
    const before = zone.spanAt(at - 1);
    shown = Math.max(shown, before.end + before.offset);
    at = before.start;
  }
  return shown;
}

/** As robfig/cron: nothing after the end of the fifth calendar year after the one of the start. */
function endOfSearch(local: number): number {
  const year = yearOf(dateOfDay(Math.floor(local / SECONDS_PER_DAY)));
  return dayOfDate(year + YEARS_AHEAD + 1, 1, 1) * SECONDS_PER_DAY;
}
