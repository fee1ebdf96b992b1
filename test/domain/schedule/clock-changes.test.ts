import { describe, expect, it } from "vitest";
import {
  describeClockChange,
  parseSpec,
  type ScheduleSpec,
} from "../../../src/domain/schedule/index.ts";

const NOW = Date.UTC(2026, 10, 30, 12);

function changes(spec: ScheduleSpec, now = NOW): string[] {
  const parsed = parseSpec(spec, "team/report");
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule.clockChanges(now).map(describeClockChange);
}

const berlin = (schedule: string, more: ScheduleSpec = {}): string[] =>
  changes({ schedule, timeZone: "Europe/Berlin", ...more });

describe("the changes of clocks of the coming year", () => {
  it("that skip a time, or bring it twice", () => {
    expect(berlin("30 2 * * *", { dstPolicy: "WallClock" })).toEqual([
      "2027-03-28T01:00:00Z: clocks in Europe/Berlin go forward by 1 h, 1 time of the schedule does not run (from 02:30)",
      "2027-10-31T01:00:00Z: clocks in Europe/Berlin go back by 1 h, 1 time of the schedule runs twice (from 02:30)",
    ]);
  });

  it("are told of what is really done, not of what might be", () => {
    expect(berlin("30 2 * * *")).toHaveLength(2);
    expect(berlin("30 2 * * *", { dstPolicy: "RunOnce" })).toEqual([
      "2027-03-28T01:00:00Z: clocks in Europe/Berlin go forward by 1 h, 1 run is at another time (from 02:30)",
    ]);
  });

  it("that make robfig/cron pass over a whole day", () => {
    expect(changes({ schedule: "30 9 * * 0", timeZone: "Asia/Beirut" })).toEqual([
      "2027-03-27T22:00:00Z: clocks in Asia/Beirut go forward by 1 h, 1 time of the schedule does not run (from 09:30)",
    ]);
    expect(
      changes({ schedule: "30 9 * * 0", timeZone: "Asia/Beirut", dstPolicy: "WallClock" }),
    ).toEqual([]);
  });

  it.each([
    ["30 9 * * *", "Europe/Berlin"],
    ["*/5 * * * *", "Europe/Berlin"],
    ["@every 10m", "Europe/Berlin"],
    ["30 2 * * *", "UTC"],
    ["30 2 * * *", "Asia/Kolkata"],
    ["0 0 31 2 *", "Europe/Berlin"],
    ["30 2 24 12 *", "Europe/Berlin"],
  ])("are none that matter: %s %s", (schedule, timeZone) => {
    expect(changes({ schedule, timeZone })).toEqual([]);
  });

  it("are counted in seconds too", () => {
    expect(berlin("*/30 0-59 2 * * *", { dstPolicy: "WallClock" })).toEqual([
      expect.stringContaining("120 times of the schedule do not run (from 02:00)"),
      expect.stringContaining("120 times of the schedule run twice (from 02:00)"),
    ]);
  });

  it("of every zone of several schedules, in order of time", () => {
    const found = changes({
      dstPolicy: "WallClock",
      schedules: [
        { schedule: "30 2 * * *", timeZone: "Europe/Berlin" },
        { schedule: "30 1 * * *", timeZone: "America/New_York" },
      ],
    });
    expect(found.map((line) => line.slice(0, 60))).toEqual([
      "2027-03-28T01:00:00Z: clocks in Europe/Berlin go forward by ",
      "2027-10-31T01:00:00Z: clocks in Europe/Berlin go back by 1 h",
      "2027-11-07T06:00:00Z: clocks in America/New_York go back by ",
    ]);
  });

  it("outside of the window are no matter", () => {
    const spec = { dstPolicy: "WallClock", notAfter: "2027-06-01T00:00:00Z" } as const;
    expect(berlin("30 2 * * *", spec)).toHaveLength(1);
  });

  it("are looked up again when one has passed", () => {
    const parsed = parseSpec(
      { schedule: "30 2 * * *", timeZone: "Europe/Berlin", dstPolicy: "WallClock" },
      "team/report",
    );
    if (!parsed.ok) throw new Error(parsed.message);
    const { schedule } = parsed;
    const [first] = schedule.clockChanges(NOW);
    expect(schedule.clockChanges(NOW + 1_000)).toBe(schedule.clockChanges(NOW));
    const later = schedule.clockChanges((first?.at ?? 0) + 1);
    expect(later.map(({ at }) => new Date(at).getUTCMonth())).toEqual([9, 2]);
    // And back again: a replica's clock may be put right.
    expect(schedule.clockChanges(NOW)[0]?.at).toBe(first?.at);
  });
});
