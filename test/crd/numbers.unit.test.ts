import { expect, test } from "vitest";
import { numberBetween, numberUpTo } from "../../tools/crd/numbers.ts";

test("numberBetween matches exactly the numbers between any two bounds", () => {
  for (let low = 0; low <= 99; low++)
    for (let high = low; high <= 99; high++) {
      const pattern = new RegExp(`^${numberBetween(low, high)}$`);
      const matched = [];
      for (let n = 0; n <= 120; n++) if (pattern.test(String(n))) matched.push(n);
      expect(matched).toEqual(Array.from({ length: high - low + 1 }, (_, i) => low + i));
    }
});

test.each(["1", "9", "10", "207", "999", "1000"])(
  "numberUpTo(%s) matches exactly the numbers from 1",
  (max) => {
    const pattern = new RegExp(`^${numberUpTo(max)}$`);
    const matched = [];
    for (let n = 0; n <= 11_000; n++) if (pattern.test(String(n))) matched.push(n);
    expect(matched).toEqual(Array.from({ length: Number(max) }, (_, i) => i + 1));
  },
);

test("numberUpTo(2^63 - 1) has its border where int64 has it", () => {
  const max = 2n ** 63n - 1n;
  const pattern = new RegExp(`^${numberUpTo(String(max))}$`);
  for (const [n, matches] of [
    [1n, true],
    [10n ** 18n - 1n, true],
    [10n ** 18n, true],
    [max - 1n, true],
    [max, true],
    [max + 1n, false],
    [max + 193n, false],
    [10n ** 19n - 1n, false],
    [10n ** 19n, false],
  ] as const)
    expect([n, pattern.test(String(n))]).toEqual([n, matches]);
  expect(pattern.test("007")).toBe(false); // leading zeros are the caller's business
});
