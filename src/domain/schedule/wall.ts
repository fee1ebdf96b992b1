/**
 * Matches of cron fields on a wall clock that never jumps. "Local" seconds count from 1970-01-01T00:00:00 on that
 * clock. Everything here is a few shifts and compares; robfig's walk (walk.ts) is for days on which clocks do jump.
 */
import {
  SECONDS_PER_DAY,
  SECONDS_PER_HOUR,
  SECONDS_PER_MINUTE,
  dateOfDay,
  dayOf,
  dayOfDate,
  daysInMonth,
  monthOf,
  weekdayOf,
  yearOf,
} from "./civil.ts";
import {
  countSixty,
  countSixtyThrough,
  countThrough,
  hasSixty,
  nextBit,
  nextSixty,
  previousBit,
  previousSixty,
  type CronFields,
} from "./fields.ts";

const NONE = -1;
const ALL_HOURS = 0xff_ffff;

/** True when the fields can match at all: a field of commas alone is empty, and there is no February 31. */
export function canMatch(f: CronFields): boolean {
  const time = countSixty(f.seconds) > 0 && countSixty(f.minutes) > 0 && f.hours !== 0;
  if (!time || f.months === 0) return false;
  const onDate = hasDate(f.months, f.daysOfMonth);
  return f.eitherDay ? onDate || f.weekdays !== 0 : onDate && f.weekdays !== 0;
}

/** One of these days is in one of these months, at least in a leap year. */
function hasDate(months: number, days: number): boolean {
  for (let month = nextBit(months, 1); month >= 0; month = nextBit(months, month + 1)) {
    if (nextBit(days, 0) < daysInMonth(2000, month) && days !== 0) return true;
  }
  return false;
}

/** True when the hour is not restricted. */
export function matchesAllHours(f: CronFields): boolean {
  return f.hours === ALL_HOURS;
}

/** True when only minutes and seconds are restricted. */
export function matchesEveryHour(f: CronFields): boolean {
  return (
    matchesAllHours(f) &&
    f.months === 0x1ffe &&
    f.daysOfMonth === 0x7fff_ffff &&
    f.weekdays === 0x7f
  );
}

export function dayMatches(f: CronFields, dayOfMonth: number, weekday: number): boolean {
  const byDate = ((f.daysOfMonth >> (dayOfMonth - 1)) & 1) === 1;
  const byWeekday = ((f.weekdays >> weekday) & 1) === 1;
  return f.eitherDay ? byDate || byWeekday : byDate && byWeekday;
}

/** First match at or after `local`, at most `years` calendar years ahead; null if there is none. */
export function nextMatch(f: CronFields, local: number, years: number): number | null {
  const day = Math.floor(local / SECONDS_PER_DAY);
  const date = dateOfDay(day);
  const year = yearOf(date);
  const month = monthOf(date);
  if ((f.months >> month) & 1 && dayMatches(f, dayOf(date), weekdayOf(day))) {
    const time = timeAtOrAfter(f, local - day * SECONDS_PER_DAY);
    if (time !== NONE) return day * SECONDS_PER_DAY + time;
  }
  const matching = nextMatchingDay(f, year, month, dayOf(date) + 1, year + years);
  return matching === null ? null : matching * SECONDS_PER_DAY + timeAtOrAfter(f, 0);
}

/** Last match at or before `local` and after `floor`; null if there is none. */
export function previousMatch(f: CronFields, local: number, floor: number): number | null {
  let day = Math.floor(local / SECONDS_PER_DAY);
  let time = local - day * SECONDS_PER_DAY;
  while ((day + 1) * SECONDS_PER_DAY > floor) {
    const date = dateOfDay(day);
    const days = matchingDays(f, yearOf(date), monthOf(date));
    const dayOfMonth = previousBit(days, dayOf(date) - 1) + 1;
    if (dayOfMonth === dayOf(date)) {
      const found = timeAtOrBefore(f, time);
      if (found !== NONE) {
        const match = day * SECONDS_PER_DAY + found;
        return match > floor ? match : null;
      }
      day -= 1;
    } else {
      // To the matching day, or out of this month.
      day -= dayOf(date) - dayOfMonth;
    }
    time = SECONDS_PER_DAY - 1;
  }
  return null;
}

/** Number of matches in (from, to], both local seconds. */
export function countMatches(f: CronFields, from: number, to: number): number {
  if (to <= from) return 0;
  const firstDay = Math.floor(from / SECONDS_PER_DAY);
  const lastDay = Math.floor(to / SECONDS_PER_DAY);
  const before = countTimesThrough(f, from - firstDay * SECONDS_PER_DAY);
  const through = countTimesThrough(f, to - lastDay * SECONDS_PER_DAY);
  const perDay = countTimesThrough(f, SECONDS_PER_DAY - 1);
  let count = 0;
  if (matchesOn(f, lastDay)) count += through;
  if (matchesOn(f, firstDay)) count -= before;
  return count + perDay * countMatchingDays(f, firstDay, lastDay);
}

function matchesOn(f: CronFields, day: number): boolean {
  const date = dateOfDay(day);
  return ((f.months >> monthOf(date)) & 1) === 1 && dayMatches(f, dayOf(date), weekdayOf(day));
}

/** Matching days in [from, to), month by month. */
function countMatchingDays(f: CronFields, from: number, to: number): number {
  let count = 0;
  let day = from;
  while (day < to) {
    const date = dateOfDay(day);
    const length = daysInMonth(yearOf(date), monthOf(date));
    const days = matchingDays(f, yearOf(date), monthOf(date));
    const left = Math.min(length - dayOf(date) + 1, to - day);
    count += countThrough(days, dayOf(date) + left - 2) - countThrough(days, dayOf(date) - 2);
    day += left;
  }
  return count;
}

function nextMatchingDay(
  f: CronFields,
  year: number,
  month: number,
  fromDay: number,
  lastYear: number,
): number | null {
  let y = year;
  let m = month;
  let from = fromDay;
  while (y <= lastYear) {
    const d = nextBit(matchingDays(f, y, m), from - 1) + 1;
    if (d > 0) return dayOfDate(y, m, d);
    from = 1;
    m = nextBit(f.months, m + 1);
    if (m < 0) {
      m = nextBit(f.months, 1);
      y += 1;
    }
  }
  return null;
}

/** The days of a month that match, bit d - 1 for day d; none if the month itself does not. */
function matchingDays(f: CronFields, year: number, month: number): number {
  return (f.months >> month) & 1 ? datesOf(f, year, month) : 0;
}

/** The days that match the two day fields, whatever the month, bit d - 1 for day d. */
export function datesOf(f: CronFields, year: number, month: number): number {
  const length = daysInMonth(year, month);
  // The seven weekday bits, turned so that bit 0 is the month's first day, and repeated over the month.
  const first = weekdayOf(dayOfDate(year, month, 1));
  const week = ((f.weekdays >> first) | (f.weekdays << (7 - first))) & 0x7f;
  const byWeekday = week | (week << 7) | (week << 14) | (week << 21) | (week << 28);
  const days = f.eitherDay ? f.daysOfMonth | byWeekday : f.daysOfMonth & byWeekday;
  return days & (-1 >>> (32 - length));
}

/** First time of day (seconds) at or after `time`, or -1. */
function timeAtOrAfter(f: CronFields, time: number): number {
  const hour = Math.floor(time / SECONDS_PER_HOUR);
  if ((f.hours >> hour) & 1) {
    const minute = Math.floor((time % SECONDS_PER_HOUR) / SECONDS_PER_MINUTE);
    if (hasSixty(f.minutes, minute)) {
      const second = nextSixty(f.seconds, time % SECONDS_PER_MINUTE);
      if (second >= 0) return timeOfDay(hour, minute, second);
    }
    const later = nextSixty(f.minutes, minute + 1);
    if (later >= 0) return timeOfDay(hour, later, nextSixty(f.seconds, 0));
  }
  const later = nextBit(f.hours, hour + 1);
  if (later < 0) return NONE;
  return timeOfDay(later, nextSixty(f.minutes, 0), nextSixty(f.seconds, 0));
}

/** Last time of day (seconds) at or before `time`, or -1. */
function timeAtOrBefore(f: CronFields, time: number): number {
  const hour = Math.floor(time / SECONDS_PER_HOUR);
  if ((f.hours >> hour) & 1) {
    const minute = Math.floor((time % SECONDS_PER_HOUR) / SECONDS_PER_MINUTE);
    if (hasSixty(f.minutes, minute)) {
      const second = previousSixty(f.seconds, time % SECONDS_PER_MINUTE);
      if (second >= 0) return timeOfDay(hour, minute, second);
    }
    const earlier = previousSixty(f.minutes, minute - 1);
    if (earlier >= 0) return timeOfDay(hour, earlier, previousSixty(f.seconds, 59));
  }
  const earlier = previousBit(f.hours, hour - 1);
  if (earlier < 0) return NONE;
  return timeOfDay(earlier, previousSixty(f.minutes, 59), previousSixty(f.seconds, 59));
}

/** How many times of a day are at or before `time`. */
function countTimesThrough(f: CronFields, time: number): number {
  const hour = Math.floor(time / SECONDS_PER_HOUR);
  const minute = Math.floor((time % SECONDS_PER_HOUR) / SECONDS_PER_MINUTE);
  const perMinute = countSixty(f.seconds);
  const perHour = countSixty(f.minutes) * perMinute;
  let count = countThrough(f.hours, hour - 1) * perHour;
  if ((f.hours >> hour) & 1) {
    count += countSixtyThrough(f.minutes, minute - 1) * perMinute;
    if (hasSixty(f.minutes, minute)) {
      count += countSixtyThrough(f.seconds, time % SECONDS_PER_MINUTE);
    }
  }
  return count;
}

function timeOfDay(hour: number, minute: number, second: number): number {
  return hour * SECONDS_PER_HOUR + minute * SECONDS_PER_MINUTE + second;
}
