import { expect, it } from "vitest";
import { backoffMs, pauseWhenLateMs } from "../../src/domain/backoff.ts";

it("doubles with each failure, up to a most", () => {
  expect([1, 2, 3, 4, 5].map((failures) => backoffMs(failures, 10, 100))).toEqual([
    10, 20, 40, 80, 100,
  ]);
  expect(backoffMs(0, 10, 100)).toBe(10);
  expect(backoffMs(100_000, 10, 100)).toBe(100);
});

it("pauses longer the later it is, within bounds", () => {
  const pauses = [-5_000, 0, 480, 800, 8_000, 3_600_000].map((late) =>
    pauseWhenLateMs(late, 60, 3_000),
  );
  expect(pauses).toEqual([60, 60, 60, 100, 1_000, 3_000]);
});

it("so that a replica without news asks a few dozen times in a minute, not a thousand", () => {
  let asked = 0;
  for (let late = 0; late < 60_000; late += pauseWhenLateMs(late, 60, 3_000)) asked += 1;
  expect(asked).toBeLessThan(60);
});
