/** docs/cronjob-differences.md: each difference has its test, and each that a test lets pass stands there. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { EventReason } from "../../src/api/reasons.ts";
import { UNDER_WAY } from "./cases-under-way.ts";
import { BY_TIME } from "./cases.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/cronjob-differences.md"), "utf8");
const cases = [...BY_TIME, ...UNDER_WAY];
/** Every reason of kubernetes v1.36, pkg/controller/cronjob. */
const NATIVE_REASONS = [
  "FailedCreate",
  "FailedDelete",
  "FailedGet",
  "InvalidSchedule",
  "JobAlreadyActive",
  "MissSchedule",
  "MissingJob",
  "SawCompletedJob",
  "SuccessfulCreate",
  "SuccessfulDelete",
  "TooManyMissedTimes",
  "UnParseableCronJobSchedule",
  "UnexpectedJob",
  "UnknownTimeZone",
  "UnparseableSchedule",
  "UnsupportedSchedule",
];

/** The rows of the tables whose last column is `test`, by the heading that they stand under. */
function rowsOf(chapter: string): { cells: string[]; tests: string[] }[] {
  const [, text = ""] = page.split(`\n## ${chapter}\n`);
  const lines = (text.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("|"));
  const [head = "", , ...rows] = lines;
  expect(head).toMatch(/\| test +\|$/);
  return rows.map((row) => {
    const cells = row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    const tests = [...(cells.at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    return { cells, tests };
  });
}

/** A path, or the name of a case. */
function isThere(test: string): boolean {
  return test.startsWith("test/")
    ? existsSync(join(ROOT, test))
    : cases.some(({ name }) => name === test);
}

/** `{a,b}` stands for both. */
function pathsOf(test: string): string[] {
  const [, before, list, after] = /^(.*)\{(.*)\}(.*)$/.exec(test) ?? [];
  return list === undefined ? [test] : list.split(",").map((one) => `${before}${one}${after}`);
}

test.each(["Runs", "Jobs", "Events", "The calendar"])(
  "each row of %s names tests that exist",
  (chapter) => {
    const rows = rowsOf(chapter);
    expect(rows.length).toBeGreaterThan(4);
    for (const { cells, tests } of rows) {
      const empty = cells.flatMap((cell, i) => (cell === "" && i !== 1 ? [i] : []));
      const missing = tests.flatMap(pathsOf).filter((name) => !isThere(name));
      expect({ row: cells[0], empty, tested: tests.length > 0, missing }).toEqual({
        row: cells[0],
        empty: [],
        tested: true,
        missing: [],
      });
    }
  },
);

test("what a case lets differ stands in the page", () => {
  const named = new Set(
    ["Runs", "Jobs", "Events"].flatMap((c) => rowsOf(c).flatMap((r) => r.tests)),
  );
  const differing = cases.filter(({ differs }) => differs !== undefined).map(({ name }) => name);
  expect(differing.filter((name) => !named.has(name))).toEqual([]);
});

test("every reason of the native controller is accounted for, and ours is what the page says", () => {
  const rows = rowsOf("Events").map(({ cells: [native = "", ours = ""] }) => ({
    reason: native.replaceAll("`", ""),
    isOurs: !/^(none|UnparseableSchedule,)/.test(ours),
  }));
  const known = Object.keys(EventReason);
  expect(new Map(rows.map(({ reason, isOurs }) => [reason, isOurs]))).toEqual(
    new Map(NATIVE_REASONS.map((reason) => [reason, known.includes(reason)])),
  );
});
