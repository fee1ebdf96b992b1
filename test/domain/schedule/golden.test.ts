import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { formatInstant, parseInstant, parseSchedule } from "../../../src/domain/schedule/index.ts";

/** One line of the golden file: what robfig/cron v3.0.1 under Go answered. */
interface Vector {
  schedule: string;
  timeZone: string;
  after: string;
  next?: string[];
  error?: true;
  seconds?: true;
  /** The answer needs a tz database at least this new, written ">=2026e". */
  tzdata?: string;
  class: string;
}

function read(name: string): Vector[] {
  return readFileSync(new URL(`../../vectors/${name}`, import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Vector);
}

const vectors = read("cron-golden.jsonl");
const clockChanges = read("cron-clock-changes.jsonl");

function answer(vector: Vector, count: number): string[] | "error" {
  const { schedule: expression, timeZone, seconds } = vector;
  const parsed = parseSchedule(expression, { timeZone, seconds });
  if (!parsed.ok) return "error";
  const times: string[] = [];
  let at = parseInstant(vector.after);
  while (times.length < count && at !== null) {
    at = parsed.schedule.robfigNext(at);
    if (at !== null) times.push(formatInstant(at));
  }
  return times;
}

describe("golden vectors of robfig/cron v3.0.1", () => {
  it("are all here", () => {
    expect(vectors).toHaveLength(2006);
  });

  const byClass = Map.groupBy(vectors, (vector) => vector.class);
  for (const [name, all] of byClass) {
    it(`${name}: ${all.length}`, () => {
      const got = all.map((vector) => ({ ...vector, got: answer(vector, 5) }));
      const wrong = got.filter(
        ({ got, next, error }) => JSON.stringify(got) !== JSON.stringify(error ? "error" : next),
      );
      expect(wrong).toEqual([]);
    });
  }
});

describe("robfig/cron v3.0.1 near changes of clocks", () => {
  for (const [name, all] of Map.groupBy(clockChanges, (vector) => vector.class)) {
    it(`${name}: ${all.length}`, () => {
      const wrong = all
        .map((vector) => ({ ...vector, got: answer(vector, vector.next?.length ?? 0) }))
        .filter(({ got, next }) => JSON.stringify(got) !== JSON.stringify(next));
      expect(wrong).toEqual([]);
    });
  }
});
