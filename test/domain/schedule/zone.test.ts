import { describe, expect, it } from "vitest";
import { parseSchedule } from "../../../src/domain/schedule/index.ts";
import {
  decodeZone,
  encodeZone,
  tzdataVersion,
  tzdbNames,
  type ZoneTable,
} from "../../../src/domain/schedule/tz-table.ts";
import { loadZone, zoneFrom, type Zone } from "../../../src/domain/schedule/zone.ts";

function must(name: string): Zone {
  const zone = loadZone(name);
  if (!zone.ok) throw new Error(zone.message);
  return zone.zone;
}

const at = (text: string): number => Date.parse(text) / 1000;

function transitions(zone: Zone, from: string, to: string): [string, number][] {
  const found: [string, number][] = [];
  let span = zone.spanAt(at(from));
  while (span.end < at(to)) {
    const next = zone.spanAt(span.end);
    if (next.offset !== span.offset) {
      found.push([new Date(next.start * 1000).toISOString().slice(0, 19), next.offset]);
    }
    span = next;
  }
  return found;
}

describe("zone names", () => {
  it("are those of the tz database, every one of them known", () => {
    expect(tzdbNames()).toHaveLength(598);
    for (const name of tzdbNames()) expect(loadZone(name)).toMatchObject({ ok: true });
  });

  it("include each that the runtime lists", () => {
    for (const name of Intl.supportedValuesOf("timeZone")) expect(tzdbNames()).toContain(name);
  });

  it.each([
    [
      "europe/berlin",
      'unknown time zone "europe/berlin": names are case-sensitive, did you mean Europe/Berlin?',
    ],
    ["utc", 'unknown time zone "utc": names are case-sensitive, did you mean UTC?'],
    ["Europe/Mars", /^unknown time zone "Europe\/Mars": not a name of the tz database/],
    ["+01:00", /^unknown time zone "\+01:00"/],
    ["IST", /^unknown time zone "IST"/],
    ["posix/Europe/Berlin", /^unknown time zone/],
    ["../etc/passwd", /^unknown time zone/],
    ["Local", /^timeZone must be an explicit name of the tz database .* not "Local"$/],
    ["local", /^timeZone must be an explicit name/],
    ["", "timeZone must not be empty: leave it out for UTC"],
    ["x".repeat(5000), /^unknown time zone "x{64}…"/],
  ])("%j is refused as UnknownTimeZone", (timeZone, message) => {
    const parsed = parseSchedule("* * * * *", { timeZone });
    expect(parsed).toMatchObject({ ok: false, reason: "UnknownTimeZone" });
    const got = parsed.ok ? "" : parsed.message;
    if (typeof message === "string") expect(got).toBe(message);
    else expect(got).toMatch(message);
  });

  it("Factory is UTC, as its zero offset says", () => {
    expect(must("Factory").spanAt(0).offset).toBe(0);
  });
});

describe("the table of offsets", () => {
  it("has each change of a year, to the second", () => {
    expect(
      transitions(must("Europe/Berlin"), "2025-06-01T00:00:00Z", "2027-06-01T00:00:00Z"),
    ).toEqual([
      ["2025-10-26T01:00:00", 3600],
      ["2026-03-29T01:00:00", 7200],
      ["2026-10-25T01:00:00", 3600],
      ["2027-03-28T01:00:00", 7200],
    ]);
  });

  it("has the shortest daylight saving time since 1970, a week of Recife's 2000", () => {
    expect(
      transitions(must("America/Recife"), "2000-09-01T00:00:00Z", "2000-12-01T00:00:00Z"),
    ).toEqual([
      ["2000-10-08T03:00:00", -7200],
      ["2000-10-15T02:00:00", -10_800],
    ]);
  });

  it("knows offsets with seconds", () => {
    expect(must("Africa/Monrovia").spanAt(at("1971-01-01T00:00:00Z")).offset).toBe(-2670);
    expect(must("Europe/Berlin").spanAt(at("1800-01-01T00:00:00Z")).offset).toBe(3208);
  });

  it("marks as clean only what is neither repeated nor skipped on the clock", () => {
    const span = must("America/New_York").spanAt(at("2026-07-01T00:00:00Z"));
    expect(new Date(span.start * 1000).toISOString()).toBe("2026-03-08T07:00:00.000Z");
    expect(span.cleanFrom - span.start).toBe(3600);
    expect(span.end - span.cleanTo).toBe(3600);
  });

  it("goes on by the rule after the last change that the data lists", () => {
    const zone = must("America/New_York");
    expect(transitions(zone, "2006-12-01T00:00:00Z", "2008-12-01T00:00:00Z")).toEqual([
      ["2007-03-11T07:00:00", -14_400],
      ["2007-11-04T06:00:00", -18_000],
      ["2008-03-09T07:00:00", -14_400],
      ["2008-11-02T06:00:00", -18_000],
    ]);
    expect(transitions(zone, "2199-12-01T00:00:00Z", "2200-12-01T00:00:00Z")).toEqual([
      ["2200-03-09T07:00:00", -14_400],
      ["2200-11-02T06:00:00", -18_000],
    ]);
  });

  it.each([
    ["America/Nuuk", "2027-03-28T01:00:00", "2027-10-31T01:00:00"], // changes on the evening before, by its own clock
    ["Africa/Cairo", "2027-04-29T22:00:00", "2027-10-28T21:00:00"], // 24:00 of a Thursday
    ["Asia/Jerusalem", "2027-03-26T00:00:00", "2027-10-30T23:00:00"], // 26:00 of a Thursday
    ["Europe/Dublin", "2027-03-28T01:00:00", "2027-10-31T01:00:00"], // winter time is the exception
  ])("reads rules with odd hours: %s", (name, spring, autumn) => {
    const found = transitions(must(name), "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z");
    expect(found.map(([when]) => when)).toEqual([spring, autumn]);
  });

  it("is whole: spans meet, also where the list ends and the rule begins", () => {
    for (const name of tzdbNames()) {
      const zone = must(name);
      for (let at = Date.UTC(1960, 0, 1) / 1000; at < Date.UTC(2045, 0, 1) / 1000;) {
        const span = zone.spanAt(at);
        if (span.end === Infinity) break;
        const next = zone.spanAt(span.end);
        expect([name, next.start]).toEqual([name, span.end]);
        expect(next.offset).not.toBe(span.offset);
        expect(zone.spanAt(span.end - 1)).toEqual(span);
        at = span.end;
      }
    }
  });

  it("answers the same in whatever order it is asked, for years of any number", () => {
    const table: ZoneTable = {
      initial: 3600,
      instants: [],
      offsets: [],
      rule: [
        { month: 3, week: 5, weekday: 0, time: 7200, clock: 3600, offset: 7200 },
        { month: 10, week: 5, weekday: 0, time: 10_800, clock: 7200, offset: 3600 },
      ],
    };
    const zone = zoneFrom("Test/Zone", table);
    const julies = Array.from({ length: 2_000 }, (_, i) => Date.UTC(2000 + i, 6, 1) / 1000);
    for (const july of [...julies, ...julies.toReversed()]) {
      expect(zone.spanAt(july).offset).toBe(7200);
    }
  });
});

describe("a line of the data", () => {
  it("says the same after it was read and written", () => {
    const line = "-1234 0 3600 7200|123|-xy 1 zz|3.5.0.-3600.0.3600 10.5.4.90000.3600.0";
    expect(encodeZone(decodeZone(line))).toBe(line);
    expect(decodeZone(line)).toMatchObject({ initial: -1234, offsets: [0, 3600, 7200] });
  });

  it("names its release", () => {
    expect(tzdataVersion).toMatch(/^20\d\d[a-z]$/);
  });
});
