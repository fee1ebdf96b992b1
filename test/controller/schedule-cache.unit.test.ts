import { expect, it } from "vitest";
import { createScheduleCache } from "../../src/controller/schedule-cache.ts";
import { aLockedCronJob, NOON } from "../builders/objects.ts";

const KEY = "team/report";

it("reads a schedule once, however often the object changes otherwise", () => {
  const cache = createScheduleCache();
  const first = cache.of(KEY, aLockedCronJob({ schedule: "H * * * *" }));
  expect(cache.of(KEY, aLockedCronJob({ schedule: "H * * * *", suspend: true }))).toBe(first);
  expect(cache.of("team/other", aLockedCronJob({ schedule: "H * * * *" }))).not.toBe(first);
  cache.forget(KEY);
  expect(cache.of(KEY, aLockedCronJob({ schedule: "H * * * *" }))).not.toBe(first);
});

it.each([
  { schedule: "5 * * * *" },
  { timeZone: "Europe/Berlin" },
  { dstPolicy: "RunOnce" },
  { hashSeed: "x" },
  { jitterSeconds: 1 },
  { notBefore: "2026-01-01T00:00:00Z" },
  { notAfter: "2026-01-01T00:00:00Z" },
] as const)("reads it again when %j changes", (edit) => {
  const cache = createScheduleCache();
  const first = cache.of(KEY, aLockedCronJob());
  expect(cache.of(KEY, aLockedCronJob(edit))).not.toBe(first);
});

it("tells the names that schedules have now: a run bears them, though no tick is another one", () => {
  const cache = createScheduleCache();
  const namesOf = (name: string): unknown => {
    const { schedule: _, ...spec } = aLockedCronJob().spec;
    const schedules = [{ schedule: "0 * * * *", name }];
    const parsed = cache.of(KEY, { ...aLockedCronJob(), spec: { ...spec, schedules } });
    return parsed.ok ? parsed.schedule.namesAt(NOON) : parsed.message;
  };
  expect(namesOf("hourly")).toEqual(["hourly"]);
  expect(namesOf("renamed")).toEqual(["renamed"]);
});
