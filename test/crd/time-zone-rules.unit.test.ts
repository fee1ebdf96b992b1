import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseSchedule } from "../../src/domain/schedule/index.ts";
import { timeZoneRules } from "../../tools/crd/time-zone-rules.ts";
import { evaluate } from "./cel.ts";

const passes = (name: string): boolean => timeZoneRules().every(({ rule }) => evaluate(rule, name));
const parses = (name: string): boolean => parseSchedule("@daily", { timeZone: name }).ok;

test("no zone that the parser knows is refused", () => {
  const lines = readFileSync(new URL("../vectors/cron-golden.jsonl", import.meta.url), "utf8");
  const golden = lines
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { timeZone: string }).timeZone);
  const known = [...new Set([...golden, ...Intl.supportedValuesOf("timeZone")])].filter(parses);
  expect(known.filter((name) => !passes(name))).toEqual([]);
  expect(known.length).toBeGreaterThan(400);
});

test.each([
  "",
  "Local",
  "lOCAL",
  ".",
  "..",
  "Europe/../UTC",
  "/UTC",
  "UTC/",
  "Europe//Berlin",
  "Europe Berlin",
  "-UTC",
  "Europe/-3",
  "<+03>-3",
  "Asia/Сalcutta", // the C is Cyrillic
  "Fifteen/Characters12345",
])("what cannot be a zone is refused: %j", (name) => {
  expect(passes(name)).toBe(false);
  expect(parses(name)).toBe(false);
});

test.each(["...", ".a", "..a", "Local/Time", "Mars/Base"])(
  "whether there is such a zone is left to the operator: %j",
  (name) => {
    expect(passes(name)).toBe(true);
    expect(parses(name)).toBe(false);
  },
);
