import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExpression } from "../../../src/domain/schedule/expression.ts";
import type { CronFields } from "../../../src/domain/schedule/fields.ts";
import { countMatches, nextMatch, previousMatch } from "../../../src/domain/schedule/wall.ts";
import { randomCron } from "./random-cron.ts";

function fieldsOf(text: string): CronFields {
  const parsed = parseExpression(text, true);
  if (!parsed.ok || parsed.expression.kind !== "cron") throw new Error(`not a cron: ${text}`);
  return parsed.expression.fields;
}

/** Local seconds around leap days, century ends and the epoch. */
const local = fc
  .tuple(
    fc.constantFrom(
      "1899-12-30",
      "1969-12-28",
      "2000-02-27",
      "2026-06-15",
      "2100-02-26",
      "2399-12-30",
    ),
    fc.integer({ min: 0, max: 6 * 86_400 }),
  )
  .map(([day, seconds]) => Date.parse(day) / 1000 + seconds);

describe("matches on a clock that never jumps", () => {
  it("backwards, forwards and counted are the same ones", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(
        randomCron,
        fc.constantFrom("0", "59", "*/20", "7,30-32"),
        local,
        fc.integer({ min: 0, max: 3 * 86_400 }),
        (cron, second, from, length) => {
          const f = fieldsOf(`${second} ${cron.text}`);
          const to = from + length;
          const forwards: number[] = [];
          for (let at = nextMatch(f, from + 1, 5); at !== null && at <= to;) {
            forwards.push(at);
            at = nextMatch(f, at + 1, 5);
          }
          const backwards: number[] = [];
          for (let at = previousMatch(f, to, from); at !== null;) {
            backwards.push(at);
            at = previousMatch(f, at - 1, from);
          }
          expect(backwards.reverse()).toEqual(forwards);
          expect(countMatches(f, from, to)).toBe(forwards.length);
        },
      ),
      { numRuns: 400, seed: 20_261_130 },
    );
  });

  it("looks no further ahead than it is told", () => {
    const f = fieldsOf("0 0 0 29 2 *");
    const start = Date.UTC(2097, 0, 1) / 1000;
    expect(nextMatch(f, start, 6)).toBeNull();
    expect(nextMatch(f, start, 7)).toBe(Date.UTC(2104, 1, 29) / 1000);
  });
});
