/**
 * Ticks of a cron expression in a zone, in the order robfig/cron gives them; all instants are whole seconds since the
 * epoch. Away from clock changes ticks are plain matches on the wall clock (wall.ts, a few shifts each); near one, the
 * walk decides (walk.ts). Both give the same answer wherever the first is used.
 */
import {
  SECONDS_PER_DAY,
  SECONDS_PER_HOUR,
  SECONDS_PER_MINUTE,
  dateOfDay,
  dayOf,
  monthOf,
  weekdayOf,
} from "./civil.ts";
import type { CronFields } from "./fields.ts";
import { YEARS_AHEAD, walk } from "./walk.ts";
import {
  canMatch,
  countMatches,
  dayMatches,
  matchesEveryHour,
  nextMatch,
  previousMatch,
} from "./wall.ts";
import type { Span, Zone } from "./zone.ts";

/** Ticks as whole seconds; the units and limits of the public Schedule are put on in schedule.ts. */
export interface TickSource {
  /** First tick at or after `from`, or null within the horizon. */
  firstFrom(from: number): number | null;
  /** What robfig/cron answers for the second before `from`; rarely a tick before `from`. */
  robfigFrom(from: number): number | null;
  /** Last tick in [first tick at or after `from`, to], or null. */
  lastBetween(from: number, to: number): number | null;
  /** Number of ticks in the same range; may stop counting at `limit`. */
  countBetween(from: number, to: number, limit: number): number;
}

/** The longest leap over plain matches: inside the walk's horizon, so that a gap the walk gives up at is seen. */
const LEAP = (YEARS_AHEAD - 1) * 365 * SECONDS_PER_DAY;

export function cronTicks(f: CronFields, zone: Zone): TickSource {
  const possible = canMatch(f);
  const everyHour = matchesEveryHour(f);

  function robfigFrom(from: number): number | null {
    if (!possible) return null;
    const span = zone.spanAt(from);
    const local = from + span.offset;
    const match = nextMatch(f, local, YEARS_AHEAD);
    if (match === local) return from;
    if (isPlain(f, everyHour, span, local, match))
      return match === null ? null : match - span.offset;
    return walk(f, zone, from);
  }

  function firstFrom(from: number): number | null {
    const tick = robfigFrom(from);
    return tick === null || tick >= from ? tick : firstInSpan(from, zone.spanAt(from));
  }

  /**
   * robfig's answer may lie BEFORE the time asked about: starting an hour over puts it back across a clock change, and
   * its chain then stands still or goes round in circles (`45 3 * * *` in Pacific/Chatham each April: CronJob never
   * fires again). Ticks only go forward here: the wall clock of the span decides.
   */
  function firstInSpan(from: number, span: Span): number | null {
    const match = nextMatch(f, from + span.offset, YEARS_AHEAD);
    if (match === null) return null;
    const tick = match - span.offset;
    return tick < span.end ? tick : firstFrom(span.end);
  }

  /**
   * From a tick to the last one up to `to` with only plain ticks between; the tick itself if there is none. A tick that
   * the walk took over a clock change need not match (an hour added past a missing midnight lands on a day that was
   * never looked at), and then the walk from it goes back over that change.
   */
  function leap(tick: number, to: number): number {
    const span = zone.spanAt(tick);
    const local = tick + span.offset;
    if (tick < plainFrom(span, everyHour) || nextMatch(f, local, 0) !== local) return tick;
    const limit = Math.min(to, plainTo(span, everyHour) - 1, tick + LEAP);
    const match = previousMatch(f, limit + span.offset, local);
    return match === null ? tick : match - span.offset;
  }

  return {
    firstFrom,
    robfigFrom,
    lastBetween(from, to) {
      let last: number | null = null;
      let tick = firstFrom(from);
      while (tick !== null && tick <= to) {
        last = leap(tick, to);
        tick = firstFrom(last + 1);
      }
      return last;
    },
    countBetween(from, to, limit) {
      let count = 0;
      let tick = firstFrom(from);
      while (tick !== null && tick <= to && count < limit) {
        const last = leap(tick, to);
        const { offset } = zone.spanAt(tick);
        count += 1 + countMatches(f, tick + offset, last + offset);
        tick = firstFrom(last + 1);
      }
      return Math.min(count, limit);
    },
  };
}

/**
 * True when the walk from `local` to `match` meets unambiguous readings of one offset only. The walk first goes back
 * to the start of the month, day or hour that does not match, then forward, never past the match.
 */
function isPlain(
  f: CronFields,
  everyHour: boolean,
  span: Span,
  local: number,
  match: number | null,
): boolean {
  if (span.offset % SECONDS_PER_MINUTE !== 0) return false;
  if (match === null) return span.end === Infinity && span.start === -Infinity;
  if (match - span.offset >= plainTo(span, everyHour)) return false;
  const from = plainFrom(span, everyHour) + span.offset;
  if (everyHour || local - from >= 31 * SECONDS_PER_DAY) return true;
  return local >= from && resetOf(f, local) >= from;
}

/** A schedule of minutes and seconds only is never taken back to the start of an hour: no reading is looked up. */
const plainFrom = (span: Span, everyHour: boolean): number =>
  everyHour ? span.start : span.cleanFrom;

const plainTo = (span: Span, everyHour: boolean): number => (everyHour ? span.end : span.cleanTo);

/** The reading that the walk starts over from. */
function resetOf(f: CronFields, local: number): number {
  const day = Math.floor(local / SECONDS_PER_DAY);
  const date = dateOfDay(day);
  if (((f.months >> monthOf(date)) & 1) === 0) return (day - dayOf(date) + 1) * SECONDS_PER_DAY;
  if (!dayMatches(f, dayOf(date), weekdayOf(day))) return day * SECONDS_PER_DAY;
  return Math.floor(local / SECONDS_PER_HOUR) * SECONDS_PER_HOUR;
}
