import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cronTicks } from "../../../src/domain/schedule/cron.ts";
import { parseExpression } from "../../../src/domain/schedule/expression.ts";
import { formatInstant, parseSchedule } from "../../../src/domain/schedule/index.ts";
import { walk } from "../../../src/domain/schedule/walk.ts";
import { tzdbNames } from "../../../src/domain/schedule/tz-table.ts";
import { loadZone, type Zone } from "../../../src/domain/schedule/zone.ts";
import { randomCron } from "./random-cron.ts";

const seed = 20_261_130;
const slow = { timeout: 60_000 };

/** Zones with every kind of clock change: half hours, two hours, at midnight, whole days, many, none. */
const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "Antarctica/Troll",
  "America/Santiago",
  "Asia/Beirut",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Pacific/Apia",
  "Pacific/Kwajalein",
  "America/Barbados",
  "Atlantic/Azores",
  "Europe/London",
  "Asia/Kolkata",
  "UTC",
];

function must(name: string): Zone {
  const zone = loadZone(name);
  if (!zone.ok) throw new Error(zone.message);
  return zone.zone;
}

/** Instants (seconds) near the clock changes of a zone from 1940 on, where the interesting answers are. */
function nearChanges(zone: Zone): fc.Arbitrary<number> {
  const changes: number[] = [];
  const end = Date.UTC(2050, 0, 1) / 1000;
  for (let span = zone.spanAt(Date.UTC(1940, 0, 1) / 1000); span.end < end;) {
    const next = zone.spanAt(span.end);
    if (next.offset !== span.offset) changes.push(next.start);
    span = next;
  }
  if (changes.length === 0) changes.push(Date.UTC(2026, 2, 1) / 1000);
  return fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -200_000, max: 200_000 }))
    .map(([at, by]) => at + by);
}

const zoneAndInstant = fc
  .constantFrom(...ZONES)
  .chain((name) => fc.tuple(fc.constant(must(name)), nearChanges(must(name))));

function fieldsOf(text: string, seconds = false) {
  const parsed = parseExpression(text, seconds);
  if (!parsed.ok || parsed.expression.kind !== "cron") throw new Error(`not a cron: ${text}`);
  return parsed.expression.fields;
}

const anything = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({
    unit: fc.constantFrom(..."*?0123456789-/,@ \t\u00A0\u3000HLWTZ.evrymonsu"),
    maxLength: 30,
  }),
  fc.string({ maxLength: 20 }).map((tail) => `@every ${tail}`),
  fc
    .array(fc.constantFrom("*", "1", "*/2", "1-5", ",", "?", "60", "-", "x"), { maxLength: 7 })
    .map((f) => f.join(" ")),
  randomCron.map((cron) => cron.text),
);

const anyInstant = fc.oneof(
  fc.double(),
  fc.integer({ min: Date.UTC(1960, 0, 1), max: Date.UTC(2060, 0, 1) }),
  fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2030, 0, 1) }),
  fc.constantFrom(NaN, Infinity, -Infinity, Number.MAX_SAFE_INTEGER, -0, -62_135_596_800_001),
);

describe("whatever it is given", () => {
  it("parses or says why not, and never throws", slow, () => {
    fc.assert(
      fc.property(
        anything,
        fc.oneof(fc.constantFrom(...ZONES), fc.string({ unit: "binary" }), fc.constant(undefined)),
        fc.boolean(),
        (expression, timeZone, seconds) => {
          const parsed = parseSchedule(expression, { timeZone, seconds });
          if (parsed.ok)
            expect(parsed.schedule.resolved).toEqual([
              { schedule: expression, timeZone: timeZone ?? "UTC" },
            ]);
          else expect(parsed.message.length).toBeGreaterThan(10);
        },
      ),
      { numRuns: 3_000, seed },
    );
  });

  it("answers for any instant, whole seconds strictly after it", slow, () => {
    fc.assert(
      fc.property(anything, fc.constantFrom(...ZONES), anyInstant, anyInstant, (text, tz, a, b) => {
        const parsed = parseSchedule(text, { timeZone: tz });
        fc.pre(parsed.ok);
        const { schedule } = parsed;
        const next = schedule.next(a);
        if (next !== null) {
          expect(next).toBeGreaterThan(a);
          expect(Number.isInteger(next / 1000)).toBe(true);
        }
        const last = schedule.lastFire(a, b);
        if (last !== null) expect(last > a && last <= b).toBe(true);
        expect(schedule.countFires(a, b) > 0).toBe(last !== null);
        expect(typeof schedule.timestamp(a)).toBe("string");
      }),
      { numRuns: 500, seed },
    );
  });
});

describe("near clock changes", () => {
  it("the plain calendar never disagrees with robfig's walk", slow, () => {
    fc.assert(
      fc.property(randomCron, zoneAndInstant, (cron, [zone, from]) => {
        const fields = fieldsOf(cron.text);
        const walked = walk(fields, zone, from);
        const tick = cronTicks(fields, zone).firstFrom(from);
        // Where the walk goes back before the instant, a tick at or after it is given instead.
        if (walked === null || walked >= from) expect(tick).toBe(walked);
        else expect(tick).toBeGreaterThanOrEqual(from);
      }),
      { numRuns: 5_000, seed },
    );
  });

  it("lastFire and countFires are the end and the length of the chain of next", slow, () => {
    fc.assert(
      fc.property(
        randomCron,
        zoneAndInstant,
        fc.integer({ min: 0, max: 400 * 86_400 }),
        fc.integer({ min: 1, max: 100 }),
        (cron, [zone, start], length, limit) => {
          const ticks = cronTicks(fieldsOf(cron.text), zone);
          let count = 0;
          let last: number | null = null;
          let tick = ticks.firstFrom(start);
          while (tick !== null && tick <= start + length && count < 5_000) {
            last = tick;
            count += 1;
            tick = ticks.firstFrom(tick + 1);
          }
          const end = count === 5_000 && last !== null ? last : start + length;
          expect(ticks.lastBetween(start, end)).toBe(last);
          expect(ticks.countBetween(start, end, Infinity)).toBe(count);
          expect(ticks.countBetween(start, end, limit)).toBe(Math.min(count, limit));
        },
      ),
      { numRuns: 500, seed },
    );
  });

  it("a seconds field keeps both too", slow, () => {
    fc.assert(
      fc.property(
        randomCron,
        fc.constantFrom("*", "0", "*/7", "59", "13,58-59"),
        zoneAndInstant,
        (cron, second, [zone, start]) => {
          const fields = fieldsOf(`${second} ${cron.text}`, true);
          const walked = walk(fields, zone, start);
          const ticks = cronTicks(fields, zone);
          const first = ticks.firstFrom(start);
          if (walked === null || walked >= start) expect(first).toBe(walked);
          fc.pre(first !== null);
          const chain = [first];
          while (chain.length < 300) {
            const next = ticks.firstFrom((chain.at(-1) ?? 0) + 1);
            if (next === null) break;
            chain.push(next);
          }
          const end = chain.at(-1) ?? 0;
          expect(ticks.countBetween(start, end, Infinity)).toBe(chain.length);
          expect(ticks.lastBetween(start, end)).toBe(end);
        },
      ),
      { numRuns: 300, seed },
    );
  });
});

describe("zones", () => {
  it("table and Intl read the same clock, for every name at some instant", slow, () => {
    // Intl has a database of its own, which may be older: the two agree on what was known to both.
    const names = tzdbNames().filter((name) => name !== "Factory");
    const instants = fc.sample(
      fc.integer({ min: Date.UTC(1900, 0, 1) / 1000, max: Date.UTC(2026, 0, 1) / 1000 }),
      { numRuns: names.length, seed },
    );
    for (const [index, name] of names.entries()) {
      const zone = must(name);
      const clock = new Intl.DateTimeFormat("sv-SE", {
        timeZone: name,
        dateStyle: "short",
        timeStyle: "medium",
      });
      const second = instants[index] ?? 0;
      const local = formatInstant((second + zone.spanAt(second).offset) * 1000);
      expect(`${name} ${clock.format(second * 1000)}`).toBe(
        `${name} ${local.replace("T", " ").replace("Z", "")}`,
      );
    }
  });
});
