import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseSchedule } from "../../src/domain/schedule/index.ts";
import { scheduleItemRules, scheduleRules } from "../../tools/crd/schedule-rules.ts";
import { evaluate } from "./cel.ts";
import { randomExpressions } from "./random-expressions.ts";

const rules = scheduleRules();
const itemRules = scheduleItemRules();
const parses = (expression: string): boolean =>
  parseSchedule(expression, { seconds: "auto", seed: "team/report" }).ok;
const descends = (expression: string): boolean =>
  refusals(expression).length === 0 ||
  rules.some(
    ({ rule, message }) => message?.endsWith("beyond end of range") && !evaluate(rule, expression),
  );
/** Messages of the rules that refuse the expression. */
const refusals = (expression: string): string[] =>
  rules
    .filter(({ rule }) => !evaluate(rule, expression))
    .map(({ message }) => message!.split(":")[0]!);

/** What admission leaves to the operator: sums of durations, and the range and step of H. */
const KNOWN_TO_PASS = /^@every |H[(/]/;
const TOTAL = 200_000;

test(`of ${TOTAL} random expressions, none that the parser accepts is refused, and only durations too long for the parser pass`, () => {
  let valid = 0;
  const refusedWrongly: string[] = [];
  const passedWrongly: string[] = [];
  for (const expression of randomExpressions({ seed: 20_261_130, count: TOTAL })) {
    // The TZ rule refuses what robfig accepts, as Kubernetes does; both sides are asked without it.
    if (expression.includes("TZ")) continue;
    const accepted = parses(expression);
    const passes = rules.every(({ rule }) => evaluate(rule, expression));
    if (accepted) valid++;
    if (accepted && !passes) refusedWrongly.push(expression);
    if (!accepted && passes) passedWrongly.push(expression);
    // Of several schedules all but descending ranges is judged alike, and @every is refused.
    const passesAsItem = itemRules.every(({ rule }) => evaluate(rule, expression));
    if (accepted && !passesAsItem && !expression.startsWith("@every "))
      refusedWrongly.push(`schedules: ${expression}`);
    if (!passes && passesAsItem && !descends(expression))
      passedWrongly.push(`as item: ${expression}`);
  }
  expect(refusedWrongly).toEqual([]);
  expect(valid, "the generator must produce enough valid ones").toBeGreaterThan(TOTAL / 6);
  expect(passedWrongly.filter((expression) => !KNOWN_TO_PASS.test(expression))).toEqual([]);
  expect(passedWrongly.length / TOTAL).toBeLessThan(0.005);
}, 120_000);

test("the golden vectors of robfig/cron get the verdict that robfig gave", () => {
  const lines = readFileSync(new URL("../vectors/cron-golden.jsonl", import.meta.url), "utf8");
  const vectors = lines
    .trim()
    .split("\n")
    .map(
      (line) =>
        JSON.parse(line) as { schedule: string; seconds?: true; class: string; error?: true },
    );
  // Six fields, and H, are ours: robfig/cron refuses the first where it expects five, and the second always.
  const isOneOf = (v: { schedule: string; seconds?: true }): boolean =>
    v.seconds === true ||
    (v.schedule.trim().split(/\s+/).length !== 6 && !/\bH\b/.test(v.schedule));
  const syntax = vectors.filter((v) => isOneOf(v) && !v.class.startsWith("zone names"));
  expect(syntax.length).toBeGreaterThan(1_500);
  const wrong = syntax.filter((v) => refusals(v.schedule).length > 0 !== (v.error ?? false));
  expect(wrong.map((v) => v.schedule)).toEqual([]);
});

describe("each mistake is named once, by the rule for it", () => {
  test.each<[expression: string, refusals: string[]]>([
    ["60 * * * *", ["minute"]],
    ["* 24 * * *", ["hour"]],
    ["0 0 0 * *", ["day of month"]],
    ["0 0 * JANUARY *", ["month"]],
    ["0 0 * * 7", ["day of week"]],
    ["*/0 * * * *", ["minute"]],
    ["61 25 * * *", ["minute", "hour"]],
    ["5-1 * * * *", ["minute"]],
    ["* 22-2 * * *", ["hour"]],
    ["0 0 * nov-feb *", ["month"]],
    ["0 0 * * fri-1", ["day of week"]],
    ["0 0 * * 1-3,Sat-0/2", ["day of week"]],
    [
      "0 4 * *",
      [
        "expected exactly 5 fields (minute, hour, day of month, month, day of week), 6 with the second first, one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or @every and a duration such as 1h30m",
      ],
    ],
    ["0 0 0 4 * * *", [expect.stringContaining("expected exactly 5 fields")]],
    ["60 0 4 * * *", ["second"]],
    ["0 60 4 * * 7", ["minute", "day of week"]],
    ["9-1 0 4 * * *", ["second"]],
    ["! 0 4 * * *", ["second"]],
    ["! 0 4 * *", ["minute"]],
    ["TZ 0 4 * * *", ["cannot use TZ or CRON_TZ in schedule, use timeZone field instead"]],
    ["H(0-60) * * * *", ["minute"]],
    ["Hx * * * *", ["minute"]],
    ["*/9223372036854775808 * * * *", ["a step is too large"]],
    ["", [expect.stringContaining("expected exactly 5 fields")]],
    ["@reboot", [expect.stringContaining("expected exactly 5 fields")]],
    ["@every 1d", [expect.stringContaining("expected exactly 5 fields")]],
    ["@daily ", [expect.stringContaining("expected exactly 5 fields")]],
    [
      "TZ=Europe/Berlin 0 9 * * *",
      ["cannot use TZ or CRON_TZ in schedule, use timeZone field instead"],
    ],
    ["CRON_TZ=UTC 0 9 * * *", ["cannot use TZ or CRON_TZ in schedule, use timeZone field instead"]],
  ])("%j", (expression, expected) => {
    expect(refusals(expression)).toEqual(expected);
  });

  test("which of the two rules of a field it is", () => {
    const messages = (expression: string): (string | undefined)[] =>
      rules.filter(({ rule }) => !evaluate(rule, expression)).map(({ message }) => message);
    expect(messages("5-1 * * * *")).toEqual(["minute: beginning of range beyond end of range"]);
    expect(messages("60-1 * * * *")).toEqual([
      "minute: expected *, H, or numbers and ranges within 0-59 separated by commas, each with an optional /step",
    ]);
  });
});

test.each([
  ["a date that never comes", "0 0 31 2 *"],
  ["empty list items", ",1,,2, * * * *"],
  ["a plus sign and leading zeros", "+05 007/+2 * * *"],
  ["anything behind *-", "*-nonsense/5 * * * *"],
  ["names in any case, mixed with numbers", "0 0 * jAn-3 MON-5"],
  ["a step beyond the range", "0 0 */9223372036854775807 * *"],
  ["blanks of all kinds", "\t0\u00a00\u2003* *\u3000* "],
  ["a macro", "@midnight"],
  ["six fields", "*/10 0 4 * * *"],
  ["H of every kind", "H H(0-59)/10 H/2 H H(1-6) H(mon-fri)"],
  ["a negative interval, which means a second", "@every -1h"],
  ["an interval of all units", "@every 1h2m3s4ms5us6\u00b5s7\u03bcs8ns"],
])("robfig's oddity is accepted: %s", (_, expression) => {
  expect(refusals(expression)).toEqual([]);
  expect(parses(expression)).toBe(true);
});
