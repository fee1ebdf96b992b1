import { describe, expect, it } from "vitest";
import {
  formatInstant,
  parseInstant,
  parseSchedule,
  type Schedule,
} from "../../../src/domain/schedule/index.ts";

function must(expression: string, timeZone?: string, seconds = false): Schedule {
  const parsed = parseSchedule(expression, { timeZone, seconds });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

const at = (text: string): number => Date.parse(text);
const show = (ms: number | null): string | null => (ms === null ? null : formatInstant(ms));

function chain(schedule: Schedule, from: string, count: number): (string | null)[] {
  const ticks: (string | null)[] = [];
  let now: number | null = at(from);
  while (ticks.length < count && now !== null) {
    now = schedule.next(now);
    ticks.push(show(now));
  }
  return ticks;
}

describe("what a schedule says of itself", () => {
  it.each([
    ["* * * * *", false, { subMinute: false, intervalSeconds: null }],
    ["*/5 * * * * *", true, { subMinute: true, intervalSeconds: null }],
    ["@hourly", true, { subMinute: false, intervalSeconds: null }],
    ["@every 10s", false, { subMinute: true, intervalSeconds: 10 }],
    ["@every 59s", false, { subMinute: true, intervalSeconds: 59 }],
    ["@every 60s", false, { subMinute: false, intervalSeconds: 60 }],
    ["@every 90.9s", false, { subMinute: false, intervalSeconds: 90 }],
    ["@every -1h", false, { subMinute: true, intervalSeconds: 1 }],
  ])("%s (seconds field: %s)", (expression, seconds, facts) => {
    const schedule = must(expression, undefined, seconds);
    expect(schedule).toMatchObject({
      resolved: [{ schedule: expression, timeZone: "UTC" }],
      ...facts,
    });
  });

  it.each([
    [undefined, "2026-07-01T12:00:00Z"],
    ["Europe/London", "2026-07-01T13:00:00+01:00"],
    ["America/St_Johns", "2026-07-01T09:30:00-02:30"],
    ["Africa/Abidjan", "2026-07-01T12:00:00Z"],
  ])("its timestamp in %s carries the zone's offset", (timeZone, text) => {
    expect(must("* * * * *", timeZone).timestamp(at("2026-07-01T12:00:00Z"))).toBe(text);
  });
});

describe("@every", () => {
  it("ticks from the instant its chain starts in, the sub-second part dropped", () => {
    const schedule = must("@every 10s");
    expect(chain(schedule, "2026-01-01T00:00:03.700Z", 3)).toEqual([
      "2026-01-01T00:00:13Z",
      "2026-01-01T00:00:23Z",
      "2026-01-01T00:00:33Z",
    ]);
  });

  it("gives the same ticks from the anchor and from any tick after it, over years", () => {
    const schedule = must("@every 7s");
    const anchor = at("2020-02-29T23:59:58.123Z");
    const now = at("2026-11-30T12:00:00Z");
    const last = schedule.lastFire(anchor, now);
    expect(last).not.toBeNull();
    expect(now - (last ?? 0)).toBeLessThan(7_000);
    expect(((last ?? 0) - at("2020-02-29T23:59:58Z")) % 7_000).toBe(0);
    expect(schedule.lastFire(at("2020-03-01T00:00:05Z"), now)).toBe(last);
    expect(schedule.countFires(anchor, now)).toBe(
      Math.floor((now - at("2020-02-29T23:59:58Z")) / 7_000),
    );
    expect(schedule.countFires(anchor, now, 100)).toBe(100);
  });

  it("has no tick before the interval is over", () => {
    const schedule = must("@every 1h");
    const start = at("2026-01-01T00:00:00Z");
    expect(schedule.lastFire(start, start + 3_599_999)).toBeNull();
    expect(schedule.lastFire(start, start + 3_600_000)).toBe(start + 3_600_000);
    expect(schedule.countFires(start, start + 3_599_999)).toBe(0);
  });
});

describe("ranges", () => {
  it("are open at the left and closed at the right", () => {
    const schedule = must("*/15 9-17 * * 1-5", "America/New_York");
    const tick = at("2026-11-30T14:00:00Z");
    expect(schedule.lastFire(tick - 1, tick)).toBe(tick);
    expect(schedule.lastFire(tick, tick + 1)).toBeNull();
    expect(schedule.countFires(tick, tick + 900_000)).toBe(1);
    expect(schedule.countFires(tick - 1, tick + 900_000)).toBe(2);
    expect(schedule.countFires(tick + 900_000, tick)).toBe(0);
  });

  it("find Friday's last tick over a weekend of downtime", () => {
    const schedule = must("*/15 9-17 * * 1-5", "America/New_York");
    const found = schedule.lastFire(at("2026-11-27T16:00:00Z"), at("2026-11-30T10:00:00Z"));
    expect(show(found)).toBe("2026-11-27T22:45:00Z");
    expect(schedule.countFires(at("2026-11-27T16:00:00Z"), at("2026-11-30T10:00:00Z"))).toBe(27);
  });

  it("do not leap from a tick that the walk took over a missing midnight", () => {
    // Amman began daylight saving time at midnight of April 1, 2005: the walk went on to 03:39 without a look at the
    // month, and from there to May 1 at 01:00, past the tick of 00:39.
    const schedule = must("39 */3 * */2 *", "Asia/Amman");
    expect(chain(schedule, "2005-03-31T19:39:00Z", 2)).toEqual([
      "2005-04-01T00:39:00Z",
      "2005-05-01T00:39:00Z",
    ]);
    const from = at("2005-03-31T12:00:00Z");
    let count = 0;
    for (
      let tick = schedule.next(from);
      tick !== null && tick <= at("2005-05-03T00:00:00Z");
      count++
    ) {
      tick = schedule.next(tick);
    }
    expect(schedule.countFires(from, at("2005-05-03T00:00:00Z"))).toBe(count);
  });

  it("count ten years of minutes exactly, and a limit exactly", () => {
    const schedule = must("* * * * *", "Europe/Berlin");
    const from = at("2026-01-01T00:00:00Z");
    const to = at("2036-01-01T00:00:00Z");
    expect(schedule.countFires(from, to)).toBe((to - from) / 60_000);
    expect(schedule.countFires(from, to, 1_000)).toBe(1_000);
    expect(schedule.lastFire(from, to)).toBe(to);
  });
});

describe("the five-year horizon", () => {
  it("ends after the fifth calendar year ahead, in the zone", () => {
    const leap = must("0 0 29 2 *");
    expect(show(leap.next(at("2099-01-01T00:00:00Z")))).toBe("2104-02-29T00:00:00Z");
    expect(leap.next(at("2098-12-31T23:59:58Z"))).toBeNull();
    // 23:59:59 counts as the second after, already in 2099.
    expect(show(leap.next(at("2098-12-31T23:59:59Z")))).toBe("2104-02-29T00:00:00Z");
    const kiritimati = must("0 0 29 2 *", "Pacific/Kiritimati");
    expect(show(kiritimati.next(at("2098-12-31T10:00:00Z")))).toBe("2104-02-28T10:00:00Z");
  });

  it("makes impossible dates never", () => {
    for (const timeZone of ["UTC", "Europe/Berlin"]) {
      expect(must("0 0 31 2 *", timeZone).next(at("2026-01-01T00:00:00Z"))).toBeNull();
      expect(
        must("0 0 31 2,4,6,9,11 *", timeZone).lastFire(0, at("2100-01-01T00:00:00Z")),
      ).toBeNull();
    }
  });

  it("ends a chain, and lastFire with it", () => {
    const leap = must("0 0 29 2 *");
    const found = leap.lastFire(at("2090-01-01T00:00:00Z"), at("2150-01-01T00:00:00Z"));
    expect(show(found)).toBe("2096-02-29T00:00:00Z");
  });
});

describe("clock changes as robfig/cron has them", () => {
  it("leaves out the hour that is skipped and runs once in the one that is repeated", () => {
    const daily = must("30 2 * * *", "Europe/Berlin");
    expect(chain(daily, "2026-03-27T12:00:00Z", 2)).toEqual([
      "2026-03-28T01:30:00Z",
      "2026-03-30T00:30:00Z",
    ]);
    expect(chain(daily, "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00Z",
      "2026-10-25T01:30:00Z",
    ]);
  });

  it("never hangs in a zone that leaves out a day, where robfig/cron does", () => {
    // Samoa had no December 30, 2011. After the 27th the walk reaches the 29th and has to get past it.
    expect(chain(must("0 0 31 * *", "Pacific/Apia"), "2011-12-27T12:00:00Z", 2)).toEqual([
      "2011-12-30T10:00:00Z",
      "2012-01-30T10:00:00Z",
    ]);
    expect(show(must("0 12 30 * *", "Pacific/Apia").next(at("2011-12-27T12:00:00Z")))).toBe(
      "2012-01-29T22:00:00Z",
    );
  });

  it("goes on where robfig/cron stands still", () => {
    const schedule = must("45 3 * * *", "Pacific/Chatham");
    const stuck = at("2026-04-04T14:00:00Z");
    expect(schedule.robfigNext(stuck)).toBe(stuck);
    expect(chain(schedule, "2026-04-04T14:00:00Z", 2)).toEqual([
      "2026-04-04T15:00:00Z",
      "2026-04-05T15:00:00Z",
    ]);
  });
});

describe("RFC 3339", () => {
  it.each([
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
    ["2026-01-02t03:04:05.999999z", "2026-01-02T03:04:05Z"],
    ["2026-01-02T03:04:05+05:30", "2026-01-01T21:34:05Z"],
    ["2024-02-29T00:00:00-00:00", "2024-02-29T00:00:00Z"],
  ])("%s is read as %s", (text, instant) => {
    expect(show(parseInstant(text))).toBe(instant);
  });

  it("keeps milliseconds", () => {
    expect(parseInstant("1970-01-01T00:00:00.0019Z")).toBe(1);
    expect(parseInstant("1970-01-01T00:00:01.5Z")).toBe(1_500);
  });

  it.each([
    "2026-02-29T00:00:00Z",
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-01-01 00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:60:00Z",
    "2026-01-01T00:00:60Z",
    "2026-01-01T00:00:00+24:00",
    "0000-01-01T00:00:00Z",
    "٢026-01-01T00:00:00Z",
    "now",
    "",
  ])("%j is refused", (text) => {
    expect(parseInstant(text)).toBeNull();
  });
});
