/**
 * What croner and cron-parser say, where they are right by anybody's rules: between changes of clocks, and with day
 * fields that all three read alike. (`*` with a step restricts a day field for robfig/cron; around changes of clocks each
 * has ways of its own.)
 */
import { CronExpressionParser } from "cron-parser";
import { Cron } from "croner";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseSchedule } from "../../../src/domain/schedule/index.ts";
import { loadZone } from "../../../src/domain/schedule/zone.ts";
import { randomCron } from "./random-cron.ts";

const seed = 20_261_130;
const COUNT = 4;
const ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Adelaide"];

/** Ours; undefined when clocks change before the last of them, or a little after. */
function ours(expression: string, timeZone: string, after: number): number[] | undefined {
  const parsed = parseSchedule(expression, { timeZone, seconds: "auto" });
  const loaded = loadZone(timeZone);
  if (!parsed.ok || !loaded.ok) throw new Error(`${expression} ${timeZone}`);
  const ticks: number[] = [];
  let at = parsed.schedule.next(after);
  for (; at !== null && ticks.length < COUNT; at = parsed.schedule.next(at)) ticks.push(at);
  const last = ticks.at(-1) ?? Infinity;
  const span = loaded.zone.spanAt(after / 1000);
  const plain = after / 1000 - 86_400 > span.start && last / 1000 + 86_400 < span.end;
  return plain ? ticks : undefined;
}

function cronersOf(expression: string, timezone: string, after: number): number[] {
  const cron = new Cron(expression, { timezone, domAndDow: false, paused: true });
  return cron.nextRuns(COUNT, new Date(after)).map((date) => date.getTime());
}

function cronParsersOf(expression: string, tz: string, after: number): number[] {
  const cron = CronExpressionParser.parse(expression, { currentDate: new Date(after), tz });
  return Array.from({ length: COUNT }, () => cron.next().getTime());
}

const question = fc.record({
  cron: randomCron.filter(
    ({ daysOfMonth, weekdays }) =>
      !daysOfMonth.text.startsWith("*/") && !weekdays.text.startsWith("*/"),
  ),
  seconds: fc.constantFrom("", "", "0 ", "*/20 ", "7,59 "),
  zone: fc.constantFrom(...ZONES),
  // Whole seconds: cron-parser counts a fraction as gone by.
  after: fc
    .integer({ min: Date.UTC(2026, 0, 1) / 1000, max: Date.UTC(2029, 0, 1) / 1000 })
    .map((second) => second * 1000),
});

it.each([
  ["croner", cronersOf],
  ["cron-parser", cronParsersOf],
])("%s agrees wherever it is right", { timeout: 120_000 }, (_, theirs) => {
  let asked = 0;
  fc.assert(
    fc.property(question, ({ cron, seconds, zone, after }) => {
      const expression = seconds + cron.text;
      const want = ours(expression, zone, after);
      fc.pre(want !== undefined);
      asked += 1;
      expect(theirs(expression, zone, after)).toEqual(want);
    }),
    { numRuns: 400, seed, maxSkipsPerRun: 1_000 },
  );
  expect(asked).toBeGreaterThanOrEqual(400);
});
