import { describe, expect, it } from "vitest";
import { parseSchedule } from "../../../src/domain/schedule/index.ts";
import { tzdbNames } from "../../../src/domain/schedule/zone-names.ts";
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

  it("is read once per stretch of years, not per question", () => {
    let opened = 0;
    let asked = 0;
    const zone = zoneFrom("Test/Zone", () => {
      opened += 1;
      return () => {
        asked += 1;
        return 3600;
      };
    });
    zone.spanAt(at("2026-01-01T00:00:00Z"));
    const first = asked;
    for (let day = 0; day < 300; day++) zone.spanAt(at("2026-01-01T00:00:00Z") + day * 86_400);
    expect(opened).toBe(1);
    expect(asked).toBe(first);
  });

  it("keeps a bounded number of stretches, whatever it is asked", () => {
    let opened = 0;
    const zone = zoneFrom("Test/Zone", () => {
      opened += 1;
      return () => 0;
    });
    for (let year = 1; year <= 9999; year += 3)
      zone.spanAt(at("0001-01-01T00:00:00Z") + year * 31_556_952);
    const before = opened;
    // The newest ones are still there, the oldest were dropped.
    zone.spanAt(at("9990-01-01T00:00:00Z"));
    expect(opened).toBe(before);
    zone.spanAt(at("2026-01-01T00:00:00Z"));
    expect(opened).toBe(before + 1);
  });
});
