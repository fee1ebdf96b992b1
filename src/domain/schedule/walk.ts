/**
 * robfig/cron v3.0.1 `SpecSchedule.Next`, step by step, with Go's time arithmetic under it. Which instants a cron
 * expression means around a clock change is defined by the steps this walk happens to take, so they are kept as they
 * are: each comment "quirk" is behaviour that users of CronJob have and that golden vectors hold.
 * One thing differs: where the original never returns (a zone that leaves out a whole day), this goes on to the next
 * day that exists.
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
import { hasSixty, nextBit, nextSixty, type CronFields, type SixtyBits } from "./fields.ts";
import { dayMatches, datesOf } from "./wall.ts";
import type { Zone } from "./zone.ts";

/** The search gives up after the end of the fifth year after the one it starts in. */
export const YEARS_AHEAD = 5;

/** What Go's time.Time is to the walk: an instant (seconds) with its reading on the zone's clock. */
interface Reading {
  at: number;
  year: number;
  month: number;
  day: number;
  weekday: number;
  hour: number;
  minute: number;
  second: number;
}

/**
 * First tick at or after `from` (seconds since the epoch), or null; rarely one before `from`, see cron.ts. `f` must be
 * able to match (`canMatch`).
 */
export function walk(f: CronFields, zone: Zone, from: number): number | null {
  const t = readingOf(zone, from);
  const lastYear = t.year + YEARS_AHEAD;
  // The first field that moves puts the smaller ones at their start; later ones find them there.
  let moved = false;

  search: while (t.year <= lastYear) {
    while (((f.months >> t.month) & 1) === 0) {
      if (!moved) setClock(zone, t, 1, 0);
      moved = true;
      addMonths(zone, t, f.months);
      if (t.month === 1) continue search;
    }
    while (!dayMatches(f, t.day, t.weekday)) {
      if (!moved) setClock(zone, t, t.day, 0);
      moved = true;
      addDays(zone, t, f);
      if (t.day === 1) continue search;
    }
    while (((f.hours >> t.hour) & 1) === 0) {
      if (!moved) setClock(zone, t, t.day, t.hour);
      moved = true;
      // Quirk: an hour of real time, so a change of half an hour leaves the minutes off the hour.
      step(zone, t, SECONDS_PER_HOUR, hoursAhead(f.hours, t.hour));
      if (t.hour === 0) continue search;
    }
    while (!hasSixty(f.minutes, t.minute)) {
      // Quirk: whole minutes of UTC, which are not those of a zone with seconds in its offset.
      if (!moved) moveTo(zone, t, t.at - modulo(t.at, SECONDS_PER_MINUTE));
      moved = true;
      step(zone, t, SECONDS_PER_MINUTE, sixtyAhead(f.minutes, t.minute));
      if (t.minute === 0) continue search;
    }
    while (!hasSixty(f.seconds, t.second)) {
      moved = true;
      step(zone, t, 1, sixtyAhead(f.seconds, t.second));
      if (t.second === 0) continue search;
    }
    return t.at;
  }
  return null;
}

/**
 * Where the original adds one month after the other until one matches or the year is over: all of them at once while
 * every reading passed over is plain, else one.
 */
function addMonths(zone: Zone, t: Reading, months: number): void {
  const next = nextBit(months, t.month + 1);
  const count = (next < 0 ? 13 : next) - t.month;
  if (count > 1 && t.day === 1) {
    const first = dayOfDate(t.year, t.month, 1);
    const ahead = (dayOfDate(t.year, t.month + count, 1) - first) * SECONDS_PER_DAY;
    if (isPlainThrough(zone, t.at, ahead)) return moveTo(zone, t, t.at + ahead);
  }
  addDate(zone, t, 1, 0);
}

/** The same for days, until one matches or the month is over. */
function addDays(zone: Zone, t: Reading, f: CronFields): void {
  const next = nextBit(datesOf(f, t.year, t.month), t.day);
  const count = (next < 0 ? daysInMonth(t.year, t.month) : next) + 1 - t.day;
  const ahead = count * SECONDS_PER_DAY;
  if (count > 1 && t.hour === 0 && isPlainThrough(zone, t.at, ahead)) {
    return moveTo(zone, t, t.at + ahead);
  }
  addDay(zone, t);
}

function isPlainThrough(zone: Zone, at: number, ahead: number): boolean {
  const span = zone.spanAt(at);
  return at >= span.cleanFrom && at + ahead < span.cleanTo;
}

/** To midnight of the next day, as far as robfig gets there. */
function addDay(zone: Zone, t: Reading): void {
  const before = t.at;
  addDate(zone, t, 0, 1);
  // Quirk: no midnight on this day. Correcting 01:00 by an hour lands on 23:00 of the day before, which is judged
  // next and usually does not match: the day with the missing midnight is passed over.
  if (t.hour > 12) moveTo(zone, t, t.at + (24 - t.hour) * SECONDS_PER_HOUR);
  else if (t.hour !== 0) moveTo(zone, t, t.at - t.hour * SECONDS_PER_HOUR);
  // The original stays here for ever: the next date does not exist and Go reads it as this one.
  if (t.at <= before) moveTo(zone, t, before + SECONDS_PER_DAY);
}

/**
 * Where the original adds one unit after the other until the field matches or wraps round: all of them at once while
 * the offset stays, else one. At least one is always added, also where starting the field over made it match.
 */
function step(zone: Zone, t: Reading, unit: number, count: number): void {
  const target = t.at + count * unit;
  moveTo(zone, t, target < zone.spanAt(t.at).end ? target : t.at + unit);
}

function hoursAhead(hours: number, hour: number): number {
  const next = nextBit(hours, hour + 1);
  return (next < 0 ? 24 : next) - hour;
}

function sixtyAhead(bits: SixtyBits, value: number): number {
  const next = nextSixty(bits, value + 1);
  return (next < 0 ? 60 : next) - value;
}

function readingOf(zone: Zone, at: number): Reading {
  const t = { at, year: 0, month: 0, day: 0, weekday: 0, hour: 0, minute: 0, second: 0 };
  moveTo(zone, t, at);
  return t;
}

function moveTo(zone: Zone, t: Reading, at: number): void {
  const local = at + zone.spanAt(at).offset;
  const dayNumber = Math.floor(local / SECONDS_PER_DAY);
  const time = local - dayNumber * SECONDS_PER_DAY;
  const date = dateOfDay(dayNumber);
  t.at = at;
  t.year = yearOf(date);
  t.month = monthOf(date);
  t.day = dayOf(date);
  t.weekday = weekdayOf(dayNumber);
  t.hour = Math.floor(time / SECONDS_PER_HOUR);
  t.minute = Math.floor((time % SECONDS_PER_HOUR) / SECONDS_PER_MINUTE);
  t.second = time % SECONDS_PER_MINUTE;
}

function setClock(zone: Zone, t: Reading, day: number, hour: number): void {
  const local = dayOfDate(t.year, t.month, day) * SECONDS_PER_DAY + hour * SECONDS_PER_HOUR;
  moveTo(zone, t, instantOf(zone, local));
}

/** Go's Time.AddDate: the same reading on another date, days past the month's end carried over. */
function addDate(zone: Zone, t: Reading, months: number, days: number): void {
  const local =
    dayOfDate(t.year, t.month + months, t.day + days) * SECONDS_PER_DAY +
    t.hour * SECONDS_PER_HOUR +
    t.minute * SECONDS_PER_MINUTE +
    t.second;
  moveTo(zone, t, instantOf(zone, local));
}

/**
 * Go's time.Date. The offset is that of the reading taken as UTC, unless the instant this gives has another one. So of
 * two instants with the same reading zones west of Greenwich get the first and zones east of it the second, and a
 * reading that does not exist becomes an instant an hour before or after.
 */
function instantOf(zone: Zone, local: number): number {
  const guess = zone.spanAt(local);
  const at = local - guess.offset;
  if (at >= guess.start && at < guess.end) return at;
  return local - zone.spanAt(at).offset;
}

function modulo(value: number, by: number): number {
  return value - Math.floor(value / by) * by;
}
