import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatInstant,
  parseSpec,
  specOfText,
  specText,
  type Schedule,
  type ScheduleSpec,
} from "../../../src/domain/schedule/index.ts";
import { randomCron } from "./random-cron.ts";

const seed = 20_261_130;
const NOON = Date.UTC(2026, 10, 30, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function must(spec: ScheduleSpec, identity = "team/report"): Schedule {
  const parsed = parseSpec(spec, identity);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

function refusal(spec: ScheduleSpec): string {
  const parsed = parseSpec(spec, "team/report");
  return parsed.ok ? "taken" : `${parsed.reason}: ${parsed.message}`;
}

function chain(schedule: Schedule, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (let at = schedule.next(from); at !== null && at <= to; at = schedule.next(at))
    ticks.push(at);
  return ticks;
}

const shown = (ticks: number[]): string[] => ticks.map((tick) => formatInstant(tick).slice(5, 19));

describe("H", () => {
  it("is one number per field, always the same for a name", () => {
    const { resolved } = must({ schedule: "H H * * *" });
    expect(resolved).toEqual([{ schedule: "55 11 * * *", timeZone: "UTC" }]);
    expect(must({ schedule: "H H * * *" }).resolved).toEqual(resolved);
    expect(must({ schedule: "H H * * *" }, "team/other").resolved).not.toEqual(resolved);
    expect(must({ schedule: "H H * * *", hashSeed: "team/report" }, "x/y").resolved).toEqual(
      resolved,
    );
  });

  it.each([
    ["H/15 * * * *", /^(\d|1[0-4])-59\/15 \* \* \* \*$/],
    ["H(0-9) H(22-23) * * *", /^\d 2[23] \* \* \*$/],
    ["H(30-59)/10 * * * *", /^3\d-59\/10 /],
    ["0 0 H * *", /^0 0 (\d|1\d|2[0-8]) \* \*$/],
    ["0 0 * H H", /^0 0 \* ([1-9]|1[0-2]) [0-6]$/],
    ["0 0 * * H(mon-fri)", /^0 0 \* \* [1-5]$/],
    ["5,H,50 * * * *", /^5,\d+,50 /],
    ["H * * * * *", /^\d+ \* \* \* \* \*$/],
    ["0 9 * * THU", /^0 9 \* \* THU$/],
    ["0 0 1 MARCH *", "refused"],
  ])("%s", (schedule, want) => {
    for (let i = 0; i < 50; i++) {
      const parsed = parseSpec({ schedule }, `team/report-${i}`);
      if (want === "refused") expect(parsed.ok).toBe(false);
      else expect(parsed.ok && parsed.schedule.resolved[0]?.schedule).toMatch(want);
    }
  });

  it("spreads names evenly", () => {
    const hits = new Map<string, number>();
    for (let i = 0; i < 6_000; i++) {
      const minute = must({ schedule: "H * * * *" }, `team/job-${i}`).resolved[0]?.schedule ?? "";
      hits.set(minute, (hits.get(minute) ?? 0) + 1);
    }
    expect(hits.size).toBe(60);
    // A hundred each; six deviations of a fair die.
    expect(Math.min(...hits.values())).toBeGreaterThan(40);
    expect(Math.max(...hits.values())).toBeLessThan(160);
  });

  it.each([
    ["H5 * * * *", 'H goes as H, H/step, H(from-to) or H(from-to)/step in minute (0-59): "H5"'],
    ["H(0-75) * * * *", '0-75 is no range within the field in minute (0-59): "H(0-75)"'],
    ["H(9-1) * * * *", '9-1 is no range within the field in minute (0-59): "H(9-1)"'],
    ["H/0 * * * *", 'the step must be 1 to 60, the size of its range in minute (0-59): "H/0"'],
    [
      "H(0-9)/11 * * * *",
      'the step must be 1 to 10, the size of its range in minute (0-59): "H(0-9)/11"',
    ],
    ["H/x * * * *", '"x" is not a number in minute (0-59): "H/x"'],
    ["H(a-9) * * * *", '"a" is not a number in minute (0-59): "H(a-9)"'],
    ["1-H * * * *", '"H" is not a number in minute (0-59): "1-H"'],
    ["H H", /^expected exactly 5 fields .* or six with the second first, found 2/],
  ])("%s is refused", (schedule, message) => {
    const got = refusal({ schedule }).replace("UnparseableSchedule: ", "");
    if (typeof message === "string") expect(got).toBe(message);
    else expect(got).toMatch(message);
  });
});

describe("a field for seconds", () => {
  it("is there when there are six fields", () => {
    expect(must({ schedule: "*/20 * * * * *" }).subMinute).toBe(true);
    expect(must({ schedule: "* * * * *" }).subMinute).toBe(false);
    expect(must({ schedule: "@daily" }).subMinute).toBe(false);
    expect(shown(chain(must({ schedule: "*/20 * * * * *" }), NOON, NOON + MINUTE))).toEqual([
      "11-30T12:00:20",
      "11-30T12:00:40",
      "11-30T12:01:00",
    ]);
  });
});

describe("several schedules", () => {
  const spec: ScheduleSpec = {
    timeZone: "Europe/Berlin",
    schedules: [
      { schedule: "0 9 * * *" },
      { schedule: "0 9 * * *", timeZone: "America/New_York" },
      { schedule: "0 15 * * *" },
    ],
  };

  it("are told apart by their names: those that a tick belongs to, in their order", () => {
    const named = must({
      schedules: [
        { schedule: "0 */6 * * *", name: "six" },
        { schedule: "0 0 * * *" },
        { schedule: "0 12 * * *", name: "noon" },
      ],
    });
    const at = (hour: number) => named.namesAt(NOON + (hour - 12) * HOUR);
    expect([at(12), at(18), at(0), at(13)]).toEqual([["six", "noon"], ["six"], ["six"], []]);
    expect(named.resolved.map(({ name }) => name)).toEqual(["six", undefined, "noon"]);
    expect(must(spec).namesAt(NOON)).toEqual([]);
  });

  it("give one run where they meet, and each tick its own zone", () => {
    const schedule = must(spec);
    const ticks = chain(schedule, NOON - 12 * HOUR, NOON + 12 * HOUR);
    // 09:00 in New York is 15:00 in Berlin.
    expect(ticks.map((tick) => schedule.timestamp(tick))).toEqual([
      "2026-11-30T09:00:00+01:00",
      "2026-11-30T09:00:00-05:00",
    ]);
    expect(schedule.resolved.map(({ timeZone }) => timeZone)).toEqual([
      "Europe/Berlin",
      "America/New_York",
      "Europe/Berlin",
    ]);
  });

  it("are the union of each, also in ranges", () => {
    fc.assert(
      fc.property(
        fc.array(randomCron, { minLength: 1, maxLength: 4 }),
        fc.nat({ max: 400 * 86_400 }),
        fc.nat({ max: 3 * 86_400 }),
        (crons, start, length) => {
          const from = NOON + start * 1000;
          const to = from + length * 1000;
          const schedules = crons.map((cron) => ({ schedule: cron.text }));
          const together = must({ schedules });
          const each = schedules.flatMap((one) => chain(must(one), from, to));
          const want = [...new Set(each)].toSorted((a, b) => a - b);
          expect(chain(together, from, to)).toEqual(want);
          expect(together.lastFire(from, to)).toBe(want.at(-1) ?? null);
          expect(together.countFires(from, to)).toBe(want.length);
          expect(together.countFires(from, to, 3)).toBe(Math.min(3, want.length));
        },
      ),
      { numRuns: 200, seed },
    );
  });

  it.each<[string, ScheduleSpec, string]>([
    ["an @every", { schedules: [{ schedule: "@every 1h" }] }, "schedules[0]: @every counts from"],
    ["none", { schedules: [] }, "neither schedule nor schedules is given"],
    ["neither", {}, "neither schedule nor schedules is given"],
    [
      "both",
      { schedule: "* * * * *", schedules: [{ schedule: "* * * * *" }] },
      "schedule and schedules are both given",
    ],
    [
      "a bad one",
      { schedules: [{ schedule: "* * * * *" }, { schedule: "61 * * * *" }] },
      "schedules[1]: 61 is above the maximum 59",
    ],
    [
      "a bad zone",
      { schedules: [{ schedule: "* * * * *", timeZone: "Europe/Mars" }] },
      "UnknownTimeZone: schedules[0]: unknown time zone",
    ],
  ])("with %s are refused", (_, spec, message) => {
    expect(refusal(spec)).toContain(message);
  });
});

describe("a window", () => {
  it("has ticks from its first to its last instant", () => {
    const schedule = must({
      schedule: "0 * * * *",
      notBefore: "2026-11-30T14:00:00Z",
      notAfter: "2026-11-30T17:00:00+01:00",
    });
    expect(shown(chain(schedule, 0, NOON + DAY))).toEqual([
      "11-30T14:00:00",
      "11-30T15:00:00",
      "11-30T16:00:00",
    ]);
    expect(schedule.lastFire(0, NOON + DAY)).toBe(NOON + 4 * HOUR);
    expect(schedule.lastFire(0, NOON)).toBeNull();
    expect(schedule.countFires(0, NOON + DAY)).toBe(3);
    expect(schedule.countFires(NOON + 2 * HOUR, NOON + DAY)).toBe(2);
    expect(schedule.next(NOON + 4 * HOUR)).toBeNull();
  });

  it("lets @every count from where it always did", () => {
    const schedule = must({
      schedule: "@every 7m",
      notBefore: "2026-11-30T12:30:00Z",
      notAfter: "2026-11-30T12:50:00Z",
    });
    expect(shown(chain(schedule, NOON, NOON + DAY))).toEqual([
      "11-30T12:35:00",
      "11-30T12:42:00",
      "11-30T12:49:00",
    ]);
    expect(schedule.lastFire(NOON, NOON + DAY)).toBe(NOON + 49 * MINUTE);
    expect(schedule.lastFire(NOON, NOON + 30 * MINUTE)).toBeNull();
    expect(schedule.countFires(NOON, NOON + DAY)).toBe(3);
    expect(schedule.countFires(NOON, NOON + DAY, 2)).toBe(2);
  });

  it("is as if the schedule had no other ticks", () => {
    const instant = fc.integer({ min: NOON, max: NOON + 3 * DAY });
    fc.assert(
      fc.property(
        fc.oneof(
          randomCron.map((cron) => cron.text),
          fc.integer({ min: 60, max: 9_000 }).map((n) => `@every ${n}s`),
        ),
        instant,
        instant,
        instant,
        instant,
        (schedule, a, b, from, to) => {
          const spec = {
            schedule,
            notBefore: new Date(a).toISOString(),
            notAfter: new Date(b).toISOString(),
          };
          const want = chain(must({ schedule }), from, to).filter((t) => t >= a && t <= b);
          const within = must(spec);
          expect(chain(within, from, to)).toEqual(want);
          expect(within.lastFire(from, to)).toBe(want.at(-1) ?? null);
          expect(within.countFires(from, to)).toBe(want.length);
        },
      ),
      { numRuns: 300, seed },
    );
  });

  it.each(["notBefore", "notAfter"])("with a %s that is no time is refused", (field) => {
    expect(refusal({ schedule: "* * * * *", [field]: "tomorrow" })).toContain(
      `${field} "tomorrow" is no RFC 3339 time`,
    );
  });
});

describe("jitter", () => {
  it("puts a tick off by the same time on every replica, less than the gap to the next", () => {
    const spec: ScheduleSpec = { schedule: "*/5 * * * *", jitterSeconds: 86_400 };
    const [one, other] = [must(spec), must(spec)];
    const delays = chain(one, NOON, NOON + DAY).map((tick) => {
      expect(other.dueAt(tick)).toBe(one.dueAt(tick));
      return one.dueAt(tick) - tick;
    });
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...delays)).toBeLessThan(5 * MINUTE);
    expect(new Set(delays).size).toBeGreaterThan(100);
    expect(delays.every((delay) => delay % 1000 === 0)).toBe(true);
  });

  it("is at most jitterSeconds, which it may be", () => {
    const schedule = must({ schedule: "0 * * * *", jitterSeconds: 3 });
    const delays = chain(schedule, NOON, NOON + 20 * DAY).map((t) => schedule.dueAt(t) - t);
    expect([...new Set(delays)].toSorted((a, b) => a - b)).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it("differs from name to name", () => {
    const spec: ScheduleSpec = { schedule: "0 * * * *", jitterSeconds: 3_000 };
    const due = Array.from({ length: 20 }, (_, i) => must(spec, `team/job-${i}`).dueAt(NOON));
    expect(new Set(due).size).toBeGreaterThan(15);
  });

  it("makes a tick due when its delay is over, and never before the tick before it", () => {
    const spec: ScheduleSpec = { schedule: "*/5 * * * *", jitterSeconds: 200 };
    const schedule = must(spec);
    const ticks = chain(schedule, NOON - DAY, NOON);
    for (let now = NOON - DAY; now <= NOON; now += 37_000) {
      const due = ticks.findLast((tick) => schedule.dueAt(tick) <= now) ?? null;
      expect(schedule.lastDue(NOON - DAY, now)).toBe(due);
    }
  });

  it("is none without jitterSeconds", () => {
    const schedule = must({ schedule: "*/5 * * * *" });
    expect(schedule.dueAt(NOON)).toBe(NOON);
    expect(schedule.lastDue(NOON - DAY, NOON)).toBe(NOON);
  });
});

describe("the text of a spec", () => {
  it("of one expression and its zone is as the first releases wrote it", () => {
    expect(specText({ schedule: "* * * * *" })).toBe('["* * * * *",null]');
    expect(specText({ schedule: "* * * * *", timeZone: "UTC" })).toBe('["* * * * *","UTC"]');
  });

  it.each<ScheduleSpec>([
    { schedule: "* * * * *" },
    { schedule: "* * * * *", timeZone: "Europe/Berlin" },
    { schedule: "H * * * *", dstPolicy: "RunOnce", hashSeed: "x", jitterSeconds: 5 },
    { schedules: [{ schedule: "@daily", timeZone: "UTC" }], notBefore: "2026-11-30T12:00:00Z" },
    { schedule: "@daily", notAfter: "2026-11-30T12:00:00Z" },
  ])("tells the spec: %j", (spec) => {
    expect(specOfText(specText(spec))).toEqual(spec);
  });

  it("does not change with fields that bear on no tick", () => {
    const spec: ScheduleSpec & { suspend: boolean } = { schedule: "@daily", suspend: true };
    expect(specText(spec)).toBe(specText({ schedule: "@daily" }));
  });

  it("does not change with the names of schedules, which bear on no tick either", () => {
    const unnamed = {
      schedules: [{ schedule: "@daily", timeZone: "UTC" }, { schedule: "@hourly" }],
    };
    const [daily, hourly] = unnamed.schedules as [{ schedule: string }, { schedule: string }];
    const named = {
      schedules: [
        { name: "night", ...daily },
        { ...hourly, name: "hour" },
      ],
    };
    expect(specText(named)).toBe(specText(unnamed));
  });

  it.each(["", "garbage", "null", "3"])("%j is none", (text) => {
    expect(specOfText(text)).toBeUndefined();
  });
});
