import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSchedule, type Schedule } from "../../../src/domain/schedule/index.ts";
import { randomCron, type RandomCron } from "./random-cron.ts";

/**
 * A second opinion that is slow and obvious: read the zone's clock from Intl at every minute of a window and ask each
 * whether the expression matches. It knows nothing of masks, tables or walks, and it only speaks where everybody
 * agrees what a schedule means: in stretches without a clock change.
 */
interface MinuteReading {
  at: number;
  minute: number;
  hour: number;
  day: number;
  month: number;
  weekday: number;
}

const MINUTE = 60_000;
const DAYS = 24;
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

function readClock(timeZone: string, from: number, days: number): MinuteReading[] {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hourCycle: "h23",
    weekday: "short",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  });
  const readings: MinuteReading[] = [];
  for (let at = from; at < from + days * 1440 * MINUTE; at += MINUTE) {
    const part = Object.fromEntries(format.formatToParts(at).map((p) => [p.type, p.value]));
    readings.push({
      at,
      minute: Number(part.minute),
      hour: Number(part.hour),
      day: Number(part.day),
      month: Number(part.month),
      weekday: WEEKDAYS.indexOf(part.weekday ?? ""),
    });
  }
  return readings;
}

function matches(cron: RandomCron, reading: MinuteReading): boolean {
  const byDate = cron.daysOfMonth.values.has(reading.day);
  const byWeekday = cron.weekdays.values.has(reading.weekday);
  const bothRestricted = !cron.daysOfMonth.star && !cron.weekdays.star;
  return (
    cron.minutes.values.has(reading.minute) &&
    cron.hours.values.has(reading.hour) &&
    cron.months.values.has(reading.month) &&
    (bothRestricted ? byDate || byWeekday : byDate && byWeekday)
  );
}

/** The chain of next() in (from, to]. */
function chain(schedule: Schedule, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (let at = schedule.next(from); at !== null && at <= to; at = schedule.next(at))
    ticks.push(at);
  return ticks;
}

function must(expression: string, timeZone: string): Schedule {
  const parsed = parseSchedule(expression, { timeZone });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

const windows: readonly [timeZone: string, from: string][] = [
  ["UTC", "2024-02-16T00:00:00Z"],
  ["UTC", "2026-12-20T00:00:00Z"],
  ["UTC", "2100-02-20T00:00:00Z"],
  ["Europe/Berlin", "2026-06-20T00:00:00Z"],
  ["America/New_York", "2027-12-18T00:00:00Z"],
  ["America/St_Johns", "2026-01-15T00:00:00Z"],
  ["Australia/Sydney", "2026-12-20T00:00:00Z"],
  ["Asia/Kathmandu", "2028-02-15T00:00:00Z"],
  ["Pacific/Kiritimati", "2026-04-20T00:00:00Z"],
  ["Pacific/Marquesas", "2029-05-20T00:00:00Z"],
  ["Africa/Monrovia", "1998-12-20T00:00:00Z"],
];

describe("against a clock read minute by minute", { timeout: 60_000 }, () => {
  it.each(windows)("%s from %s: the same ticks", (timeZone, fromText) => {
    const from = Date.parse(fromText);
    const clock = readClock(timeZone, from + MINUTE, DAYS);
    const to = from + clock.length * MINUTE;
    // The window must not hold a clock change, or the two may differ rightly.
    const offsetAt = (r: MinuteReading): number => (r.at / MINUTE - r.hour * 60 - r.minute) % 1440;
    expect(new Set(clock.map(offsetAt)).size).toBe(1);

    fc.assert(
      fc.property(randomCron, fc.nat(), fc.nat(), (cron, a, b) => {
        const schedule = must(cron.text, timeZone);
        const expected = clock.filter((reading) => matches(cron, reading)).map((r) => r.at);
        expect(chain(schedule, from, to)).toEqual(expected);

        // And from within, at instants off the minute.
        const start = from + (a % (to - from));
        const end = start + (b % (to - start));
        const inside = expected.filter((at) => at > start && at <= end);
        expect(schedule.lastFire(start, end)).toBe(inside.at(-1) ?? null);
        expect(schedule.countFires(start, end)).toBe(inside.length);
      }),
      { numRuns: 60, seed: 20_261_130 },
    );
  });
});
