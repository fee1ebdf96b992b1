import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExpression } from "../../../src/domain/schedule/expression.ts";
import {
  formatInstant,
  parseSchedule,
  type DstPolicy,
} from "../../../src/domain/schedule/index.ts";
import { readingTicks } from "../../../src/domain/schedule/readings.ts";
import { dayMatches } from "../../../src/domain/schedule/wall.ts";
import { hasSixty, type CronFields } from "../../../src/domain/schedule/fields.ts";
import { loadZone, type Zone } from "../../../src/domain/schedule/zone.ts";
import { randomCron } from "./random-cron.ts";

const seed = 20_261_130;

function must(name: string): Zone {
  const zone = loadZone(name);
  if (!zone.ok) throw new Error(zone.message);
  return zone.zone;
}

function fieldsOf(text: string): CronFields {
  const parsed = parseExpression(text, "auto");
  if (!parsed.ok || parsed.expression.kind !== "cron") throw new Error(`not a cron: ${text}`);
  return parsed.expression.fields;
}

function chain(
  schedule: string,
  timeZone: string,
  dstPolicy: DstPolicy,
  [from, to]: [string, string],
): string[] {
  const parsed = parseSchedule(schedule, { timeZone, dstPolicy, seconds: "auto" });
  if (!parsed.ok) throw new Error(parsed.message);
  const ticks: string[] = [];
  const end = Date.parse(to);
  let at = parsed.schedule.next(Date.parse(from) - 1);
  for (; at !== null && at < end; at = parsed.schedule.next(at)) ticks.push(formatInstant(at));
  return ticks.map((tick) => tick.slice(5, 16));
}

/** Clocks in Berlin: 02:00 -> 03:00 at 01:00 UTC, 03:00 -> 02:00 at 01:00 UTC. */
const SPRING: [string, string] = ["2027-03-27T22:00:00Z", "2027-03-28T22:00:00Z"];
const AUTUMN: [string, string] = ["2027-10-30T22:00:00Z", "2027-10-31T23:00:00Z"];

describe("a time of day that is skipped", () => {
  it.each<[DstPolicy, string[]]>([
    ["Kubernetes", []],
    ["WallClock", []],
    ["RunOnce", ["03-28T01:00"]],
  ])("%s", (policy, want) => {
    expect(chain("30 2 * * *", "Europe/Berlin", policy, SPRING)).toEqual(want);
  });

  it("runs once for all that were skipped, and once where one of them is due then anyway", () => {
    expect(chain("*/20 2 * * *", "Europe/Berlin", "RunOnce", SPRING)).toEqual(["03-28T01:00"]);
    expect(chain("0 2,3 * * *", "Europe/Berlin", "RunOnce", SPRING)).toEqual(["03-28T01:00"]);
  });

  it("runs at the end of a day that a zone leaves out", () => {
    const around: [string, string] = ["2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z"];
    expect(chain("0 9 * * *", "Pacific/Apia", "RunOnce", around)).toEqual([
      "12-29T19:00",
      "12-30T10:00",
      "12-30T19:00",
    ]);
    expect(chain("0 9 * * *", "Pacific/Apia", "WallClock", around)).toEqual([
      "12-29T19:00",
      "12-30T19:00",
    ]);
  });

  it("at midnight does not cost the day, as it does with robfig/cron", () => {
    const around: [string, string] = ["2027-03-27T00:00:00Z", "2027-03-29T00:00:00Z"];
    // Beirut: midnight of March 28 is 01:00.
    expect(chain("30 9 * * 0", "Asia/Beirut", "WallClock", around)).toEqual(["03-28T06:30"]);
    expect(chain("0 0 28 3 *", "Asia/Beirut", "RunOnce", around)).toEqual(["03-27T22:00"]);
    expect(chain("0 0 28 3 *", "Asia/Beirut", "WallClock", around)).toEqual([]);
  });
});

describe("a time of day that comes twice", () => {
  it.each<[DstPolicy, string[]]>([
    ["WallClock", ["10-31T00:30", "10-31T01:30"]],
    ["RunOnce", ["10-31T00:30"]],
  ])("%s", (policy, want) => {
    expect(chain("30 2 * * *", "Europe/Berlin", policy, AUTUMN)).toEqual(want);
  });

  it("has run, for whoever asks while it comes the second time", () => {
    const asked: [string, string] = ["2027-10-31T01:10:00Z", "2027-10-31T12:00:00Z"];
    expect(chain("30 2 * * *", "Europe/Berlin", "RunOnce", asked)).toEqual([]);
    expect(chain("30 2 * * *", "Europe/Berlin", "WallClock", asked)).toEqual(["10-31T01:30"]);
  });

  it("is half an hour in Lord Howe", () => {
    const around: [string, string] = ["2027-04-03T13:00:00Z", "2027-04-03T17:00:00Z"];
    // 02:00 -> 01:30 at 15:00 UTC.
    expect(chain("45 1 * * *", "Australia/Lord_Howe", "RunOnce", around)).toEqual(["04-03T14:45"]);
    expect(chain("45 1 * * *", "Australia/Lord_Howe", "WallClock", around)).toEqual([
      "04-03T14:45",
      "04-03T15:15",
    ]);
  });
});

describe("a schedule of all hours", () => {
  it.each<DstPolicy>(["WallClock", "RunOnce"])("never pauses: %s", (policy) => {
    const hourly = chain("30 * * * *", "Europe/Berlin", policy, AUTUMN);
    expect(hourly).toHaveLength(25);
    expect(chain("30 * * * *", "Europe/Berlin", policy, SPRING)).toHaveLength(24);
  });
});

/** The definitions themselves, minute by minute. */
function byDefinition(
  f: CronFields,
  zone: Zone,
  policy: DstPolicy,
  from: number,
  to: number,
): number[] {
  const once = policy === "RunOnce" && f.hours !== 0xff_ffff;
  const ticks: number[] = [];
  let shown = -Infinity;
  for (let at = from - 40 * 3600; at <= to; at += 60) {
    const reading = at + zone.spanAt(at).offset;
    // The readings that count now: this one, or for RunOnce all that are new.
    const first = once ? Math.max(shown + 60, reading - 48 * 3600) : reading;
    let matches = false;
    for (let r = first; r <= reading && !matches; r += 60) matches = isMatch(f, r);
    shown = Math.max(shown, reading);
    if (matches && at >= from) ticks.push(at);
  }
  return ticks;
}

function isMatch(f: CronFields, local: number): boolean {
  const date = new Date(local * 1000);
  return (
    ((f.months >> (date.getUTCMonth() + 1)) & 1) === 1 &&
    dayMatches(f, date.getUTCDate(), date.getUTCDay()) &&
    ((f.hours >> date.getUTCHours()) & 1) === 1 &&
    hasSixty(f.minutes, date.getUTCMinutes())
  );
}

const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "Antarctica/Troll",
  "Asia/Beirut",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Pacific/Apia",
  "Pacific/Kwajalein",
  "Asia/Pyongyang",
];

describe("near clock changes", () => {
  it.each(["WallClock", "RunOnce"] as const)(
    "%s is what it says",
    { timeout: 120_000 },
    (policy) => {
      const moments = ZONES.flatMap((name) => {
        const zone = must(name);
        const changes: [Zone, number][] = [];
        const end = Date.UTC(2040, 0, 1) / 1000;
        for (let span = zone.spanAt(Date.UTC(1975, 0, 1) / 1000); span.end < end;) {
          changes.push([zone, span.end]);
          span = zone.spanAt(span.end);
        }
        return changes;
      });
      fc.assert(
        fc.property(
          randomCron,
          fc.constantFrom(...moments),
          fc.integer({ min: -60 * 50, max: 60 * 10 }),
          fc.integer({ min: 1, max: 60 * 60 }),
          fc.integer({ min: 1, max: 60 }),
          (cron, [zone, change], before, length, limit) => {
            const f = fieldsOf(cron.text);
            const from = Math.floor(change / 60) * 60 + before * 60;
            const to = from + length * 60;
            const ticks = readingTicks(f, zone, policy);
            const want = byDefinition(f, zone, policy, from, to);
            const got: number[] = [];
            let at = ticks.firstFrom(from);
            for (; at !== null && at <= to; at = ticks.firstFrom(at + 1)) got.push(at);
            expect(got).toEqual(want);
            expect(ticks.lastBetween(from, to)).toBe(want.at(-1) ?? null);
            expect(ticks.countBetween(from, to, Infinity)).toBe(want.length);
            expect(ticks.countBetween(from, to, limit)).toBe(Math.min(limit, want.length));
          },
        ),
        { numRuns: 400, seed },
      );
    },
  );
});

it.each(["WallClock", "RunOnce"] as const)(
  "%s: ranges are the chain of next, with seconds too",
  { timeout: 60_000 },
  (policy) => {
    const zone = must("Europe/Berlin");
    const changes = [Date.UTC(2027, 2, 28, 1) / 1000, Date.UTC(2027, 9, 31, 1) / 1000];
    fc.assert(
      fc.property(
        randomCron,
        fc.constantFrom("*", "0", "*/7", "59", "13,58-59"),
        fc.constantFrom(...changes),
        fc.integer({ min: -100_000, max: 10_000 }),
        (cron, second, change, by) => {
          const ticks = readingTicks(fieldsOf(`${second} ${cron.text}`), zone, policy);
          const from = change + by;
          const chain: number[] = [];
          let at = ticks.firstFrom(from);
          for (; at !== null && chain.length < 300; at = ticks.firstFrom(at + 1)) chain.push(at);
          fc.pre(chain.length > 0);
          const end = chain.at(-1) ?? 0;
          expect(ticks.countBetween(from, end, Infinity)).toBe(chain.length);
          expect(ticks.lastBetween(from, end)).toBe(end);
          expect(ticks.lastBetween(from, end - 1)).toBe(chain.at(-2) ?? null);
        },
      ),
      { numRuns: 200, seed },
    );
  },
);

it("gives up after five years, as robfig/cron does", () => {
  const from = Date.UTC(2096, 2, 1) / 1000;
  for (const policy of ["WallClock", "RunOnce"] as const) {
    const ticks = readingTicks(fieldsOf("0 0 29 2 *"), must("Europe/Berlin"), policy);
    expect(ticks.firstFrom(from)).toBeNull();
    expect(ticks.firstFrom(Date.UTC(2024, 2, 1) / 1000)).toBe(Date.UTC(2028, 1, 28, 23) / 1000);
    expect(readingTicks(fieldsOf("0 0 31 2 *"), must("UTC"), policy).firstFrom(0)).toBeNull();
  }
});
