/** The rule at the end of a TZif file: a POSIX TZ string with the extensions of RFC 9636 (hours from -167 to 167). */
import type { YearlyRule } from "../../src/domain/schedule/tz-table.ts";

const NAME = "(?:<[^>]+>|[A-Za-z]+)";
const TIME = String.raw`[-+]?\d+(?::\d+){0,2}`;
const RULE = new RegExp(`^${NAME}(${TIME})(?:${NAME}(${TIME})?,([^,]+),([^,]+))?$`);
const DATE = new RegExp(String.raw`^M(\d+)\.(\d)\.(\d)(?:/(${TIME}))?$`);
const DEFAULT_TIME = 2 * 3600;

/** Offsets of POSIX count westward; what is returned counts eastward, in seconds. */
export function readPosixRule(text: string): { standard: number; yearly?: YearlyRule } {
  const [matched, standardText, daylightText, from, to] = RULE.exec(text) ?? [];
  if (matched === undefined || standardText === undefined)
    throw new Error(`cannot read the rule ${JSON.stringify(text)}`);
  const standard = 0 - seconds(standardText);
  if (from === undefined || to === undefined) return { standard };
  const daylight = daylightText === undefined ? standard + 3600 : 0 - seconds(daylightText);
  // The time of day of a change is read on the clock before it.
  const changes = [
    { ...readDate(from), clock: standard, offset: daylight },
    { ...readDate(to), clock: daylight, offset: standard },
  ].toSorted((a, b) => a.month - b.month);
  return { standard, yearly: changes as unknown as YearlyRule };
}

function readDate(text: string): Pick<YearlyRule[0], "month" | "week" | "weekday" | "time"> {
  const [matched, month, week, weekday, time] = DATE.exec(text) ?? [];
  // The other forms, days of the year, are in no zone of today.
  if (matched === undefined) throw new Error(`cannot read the date ${JSON.stringify(text)}`);
  return {
    month: Number(month),
    week: Number(week),
    weekday: Number(weekday),
    time: time === undefined ? DEFAULT_TIME : seconds(time),
  };
}

function seconds(text: string): number {
  const [hours = 0, minutes = 0, rest = 0] = text.replace(/^[-+]/, "").split(":").map(Number);
  return (text.startsWith("-") ? -1 : 1) * (hours * 3600 + minutes * 60 + rest);
}
