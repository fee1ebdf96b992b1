import { describe, expect, it } from "vitest";
import { parseGoDuration } from "../../../src/domain/schedule/duration.ts";
import { parseSchedule, type Schedule } from "../../../src/domain/schedule/index.ts";

const START = Date.UTC(2026, 0, 1);

function must(expression: string, seconds = false): Schedule {
  const parsed = parseSchedule(expression, { seconds });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

function refusal(expression: string, seconds = false): string {
  const parsed = parseSchedule(expression, { seconds });
  if (parsed.ok) throw new Error(`accepted: ${expression}`);
  expect(parsed.reason).toBe("UnparseableSchedule");
  return parsed.message;
}

describe("a schedule that cannot be read says what and where", () => {
  it.each([
    ["", "schedule is empty"],
    ["* * * *", /^expected exactly 5 fields \(minute, hour, .*\), found 4: "\* \* \* \*"$/],
    ["* * * * * *", /^expected exactly 5 fields .* found 6/],
    [" @daily", /^expected exactly 5 fields .* found 1/],
    ["60 * * * *", '60 is above the maximum 59 in minute (0-59): "60"'],
    ["* 24 * * *", '24 is above the maximum 23 in hour (0-23): "24"'],
    ["* * 0 * *", '0 is below the minimum 1 in day of month (1-31): "0"'],
    ["* * * 13 *", '13 is above the maximum 12 in month (1-12): "13"'],
    ["* * * * 7", '7 is above the maximum 6 in day of week (0-6): "7"'],
    ["5-1 * * * *", 'the range begins at 5 beyond its end 1 in minute (0-59): "5-1"'],
    ["*/0 * * * *", 'the step must be a positive number in minute (0-59): "*/0"'],
    ["1-2-3 * * * *", 'too many hyphens in minute (0-59): "1-2-3"'],
    ["1/2/3 * * * *", 'too many slashes in minute (0-59): "1/2/3"'],
    ["* * * Mai *", '"Mai" is not a number in month (1-12): "Mai"'],
    ["-5 * * * *", '"" is not a number in minute (0-59): "-5"'],
    [
      "99999999999999999999 * * * *",
      '"99999999999999999999" is too large in minute (0-59): "99999999999999999999"',
    ],
    ["@reboot", /^unrecognized descriptor "@reboot" \(known: @yearly, .*@every <duration>\)$/],
    ["@every", /^unrecognized descriptor/],
    ["@every 5", 'duration of "@every 5" has no unit after "5" (ns, us, ms, s, m or h)'],
    ["@every 1d", 'duration of "@every 1d" has the unknown unit "d" (ns, us, ms, s, m or h)'],
    ["@every ", 'duration of "@every " is empty'],
    ["@every h", 'duration of "@every h" has no number at "h"'],
    ["TZ=UTC 0 9 * * *", "cannot use TZ or CRON_TZ in schedule, use the timeZone field instead"],
    ["CRON_TZ=UTC @daily", "cannot use TZ or CRON_TZ in schedule, use the timeZone field instead"],
    ["*".repeat(5000), "schedule is longer than 4096 characters"],
  ])("%j", (expression, message) => {
    const got = refusal(expression);
    if (typeof message === "string") expect(got).toBe(message);
    else expect(got).toMatch(message);
  });

  it("keeps long input out of its messages", () => {
    expect(refusal(`${"9".repeat(4000)} * * * *`).length).toBeLessThan(200);
    expect(refusal(`@every ${"9".repeat(4000)}`).length).toBeLessThan(200);
    expect(refusal("* ".repeat(2000)).length).toBeLessThan(200);
  });
});

describe("what robfig/cron reads as the same", () => {
  it.each([
    ["?  ?\t?\u3000? ?", "* * * * *"],
    ["5/20 * * * *", "5-59/20 * * * *"],
    ["*-nonsense * * * *", "* * * * *"],
    [",,7,, * * * *", "7 * * * *"],
    ["+7 007 * * *", "7 7 * * *"],
    ["0 0 * JAN-mar sUn", "0 0 * 1-3 0"],
    ["0 0 * * FR\u0130", "0 0 * * 5"],
    ["0 0 */1 * 1", "0 0 * * 1"],
    ["@hourly", "0 * * * *"],
    ["@daily", "0 0 * * *"],
    ["@midnight", "0 0 * * *"],
    ["@weekly", "0 0 * * 0"],
    ["@monthly", "0 0 1 * *"],
    ["@yearly", "0 0 1 1 *"],
    ["@annually", "0 0 1 1 *"],
  ])("%j is %j", (left, right) => {
    const year = START + 366 * 86_400_000;
    const counts = [left, right].map((each) => must(each).countFires(START, year));
    expect(counts[0]).toBe(counts[1]);
    let at: number | null = START;
    for (let i = 0; i < 50 && at !== null; i++) {
      const next = must(left).next(at);
      expect(next).toBe(must(right).next(at));
      at = next;
    }
  });

  it("a day matches by either restricted day field, unless one holds a star", () => {
    // 13th or Friday; the step takes the star's meaning away.
    expect(must("0 0 13 * 5").countFires(START, Date.UTC(2027, 0, 1))).toBe(12 + 53 - 3);
    expect(must("0 0 13 * *").countFires(START, Date.UTC(2027, 0, 1))).toBe(12);
    expect(must("0 0 */2 * 5").countFires(Date.UTC(2026, 1, 1), Date.UTC(2026, 2, 1))).toBe(
      14 + 4 - 2,
    );
  });

  it("a field of commas alone never fires", () => {
    for (const expression of [", * * * *", "0 , * * *", "0 0 * ,, *", "0 0 , * ,"]) {
      expect(must(expression).next(START)).toBeNull();
      expect(must(expression).countFires(START, START + 1e12)).toBe(0);
    }
  });
});

describe("six fields", () => {
  it("put seconds first and are asked for", () => {
    const schedule = must("*/20 5 * * * *", true);
    expect(schedule.next(START)).toBe(START + 300_000);
    expect(schedule.next(START + 300_000)).toBe(START + 320_000);
    expect(refusal("5 * * * *", true)).toMatch(
      /^expected exactly 6 fields \(second, minute, .* found 5/,
    );
    expect(must("@hourly", true).next(START)).toBe(START + 3_600_000);
  });
});

describe("Go durations", () => {
  it.each([
    ["1h30m", 5_400_000_000_000n],
    ["1.5h2m", 5_520_000_000_000n],
    [".5s", 500_000_000n],
    ["5.s", 5_000_000_000n],
    ["-3s", -3_000_000_000n],
    ["+0", 0n],
    ["1\u00B5s1\u03BCs1us", 3_000n],
    ["0.123456789123456789h", 444_444_440_844n],
    ["9223372036854775807ns", 9_223_372_036_854_775_807n],
    ["-9223372036854775808ns", -9_223_372_036_854_775_808n],
    ["9223372036854775808ns9223372036854775808ns5ns", 5n],
  ])("%s", (text, nanos) => {
    expect(parseGoDuration(text)).toEqual({ ok: true, nanos });
  });

  it.each([
    "",
    "-",
    ".",
    ".s",
    "1",
    "1e3s",
    "1..5s",
    "1 s",
    "--1s",
    "9223372036854775808ns",
    "2562048h",
  ])("%j is refused", (text) => {
    expect(parseGoDuration(text)).toMatchObject({ ok: false });
  });
});
