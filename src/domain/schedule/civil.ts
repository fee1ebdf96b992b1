/**
 * Proleptic Gregorian calendar on plain integers: no Date objects, no allocation.
 * A "day" is a count of days since 1970-01-01; a date is packed as year << 9 | month << 5 | day.
 * Algorithm: Howard Hinnant, "chrono-compatible low-level date algorithms" (days_from_civil, civil_from_days).
 */

export const SECONDS_PER_DAY = 86_400;
export const SECONDS_PER_HOUR = 3_600;
export const SECONDS_PER_MINUTE = 60;

/** Instants outside 0001-01-01..9999-12-31 cannot be written as RFC 3339, so nothing here leaves that range. */
export const MIN_SECOND = -62_135_596_800;
export const MAX_SECOND = 253_402_300_799;

const DAYS_PER_ERA = 146_097; // 400 years
const DAYS_TO_0000_03_01 = 719_468;

/** Integer division of numbers >= 0; keeps the arithmetic in 32-bit integers. */
const div = (value: number, by: number): number => (value / by) | 0;

/** Day number of a date from year 0 on. Month and day may run over (month 13, day 32): they carry, as in Go. */
export function dayOfDate(year: number, month: number, day: number): number {
  const carry = div(month - 1, 12);
  const m = month - carry * 12;
  const y = year + carry - (m <= 2 ? 1 : 0) + 400;
  const era = div(y, 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = div(153 * (m > 2 ? m - 3 : m + 9) + 2, 5);
  const dayOfEra = yearOfEra * 365 + div(yearOfEra, 4) - div(yearOfEra, 100) + dayOfYear;
  return (era - 1) * DAYS_PER_ERA + dayOfEra - DAYS_TO_0000_03_01 + day - 1;
}

/** The date of a day number from year 0 on, packed; take it apart with yearOf, monthOf, dayOf. */
export function dateOfDay(day: number): number {
  const z = day + DAYS_TO_0000_03_01 + DAYS_PER_ERA;
  const era = div(z, DAYS_PER_ERA);
  const dayOfEra = z - era * DAYS_PER_ERA;
  const yearOfEra = div(
    dayOfEra - div(dayOfEra, 1460) + div(dayOfEra, 36_524) - div(dayOfEra, 146_096),
    365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + div(yearOfEra, 4) - div(yearOfEra, 100));
  const mp = div(5 * dayOfYear + 2, 153);
  const month = mp < 10 ? mp + 3 : mp - 9;
  const year = yearOfEra + (era - 1) * 400 + (month <= 2 ? 1 : 0);
  return (year << 9) | (month << 5) | (dayOfYear - div(153 * mp + 2, 5) + 1);
}

export const yearOf = (date: number): number => date >> 9;
export const monthOf = (date: number): number => (date >> 5) & 15;
export const dayOf = (date: number): number => date & 31;

/** 0 = Sunday, as in cron. 1970-01-01 was a Thursday. */
export function weekdayOf(day: number): number {
  const w = (day + 4) % 7;
  return w < 0 ? w + 7 : w;
}

/** Bit m is set for the months of 31 days: January, March, May, July, August, October, December. */
const LONG_MONTHS = 0b1_0101_1010_1010;

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return (LONG_MONTHS >> month) & 1 ? 31 : 30;
}
