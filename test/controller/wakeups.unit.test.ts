import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { done } from "../../src/controller/workqueue.ts";
import { manualTime } from "./manual-time.ts";
import { immediately, setUp } from "./queue-harness.ts";

describe("wake-ups", () => {
  it("addAfter waits, and add does not cancel it", async () => {
    const { queue, started, time } = setUp(immediately);
    queue.addAfter("a", 500);
    queue.add("a");
    await time.pass(499);
    expect(started).toEqual(["a"]);
    await time.pass(1);
    expect(started).toEqual(["a", "a"]);
  });

  it("keeps the earliest of several", async () => {
    const { queue, started, time } = setUp(immediately);
    queue.addAfter("a", 500);
    queue.addAfter("a", 200);
    queue.addAfter("a", 900);
    await time.pass(200);
    expect(started).toEqual(["a"]);
    await time.pass(5000);
    expect(started).toEqual(["a"]);
  });

  it("notices a wall clock set ahead within a second", async () => {
    const { queue, started, time } = setUp(immediately);
    queue.addAt("a", time.clock.now() + 7_200_000);
    await time.pass(10);
    time.jump(7_200_000);
    await time.pass(1000);
    expect(started).toEqual(["a"]);
  });

  it("waits on when the wall clock is set back", async () => {
    const { queue, started, time } = setUp(immediately);
    queue.addAt("a", time.clock.now() + 10_000);
    time.jump(-60_000);
    await time.pass(69_999);
    expect(started).toEqual([]);
    await time.pass(1);
    expect(started).toEqual(["a"]);
  });

  it("carries its priority", async () => {
    const { queue, started, time } = setUp(immediately);
    queue.addAfter("low", 10);
    queue.addAfter("high", 10, { priority: 1 });
    await time.pass(10);
    expect(started).toEqual(["high", "low"]);
  });

  it("wakes keys of one moment in the order in which they asked", async () => {
    const { queue, started, time } = setUp(immediately);
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    for (const key of keys) queue.addAfter(key, 100);
    await time.pass(100);
    expect(started).toEqual(keys);
  });

  it("sleeps longer than setTimeout can", async () => {
    const { queue, started, time } = setUp(immediately);
    const year = 365 * 24 * 3_600_000;
    queue.addAfter("a", year);
    await time.pass(year - 1);
    expect(started).toEqual([]);
    await time.pass(1);
    expect(started).toEqual(["a"]);
  });

  it("wakes any set of keys in the order of their moments", async () => {
    const moments = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 500 }), fc.boolean()),
      { maxLength: 300 },
    );
    await fc.assert(
      fc.asyncProperty(moments, async (script) => {
        const time = manualTime();
        const woken: [string, number][] = [];
        const { queue } = setUp(
          (key) => {
            woken.push([key, time.clock.monotonic()]);
            return Promise.resolve(done());
          },
          {},
          time,
        );
        const want = new Map<string, number>();
        for (const [id, ms, drop] of script) {
          const key = `k${id}`;
          if (drop) {
            queue.forget(key);
            want.delete(key);
          } else {
            queue.addAfter(key, ms);
            want.set(key, Math.min(ms, want.get(key) ?? Infinity));
          }
        }
        expect(queue.stats().scheduled).toBe(want.size);
        await time.pass(500);
        expect(new Map(woken)).toEqual(want);
        expect(woken).toHaveLength(want.size);
        const at = woken.map(([, ms]) => ms);
        expect(at).toEqual([...at].sort((a, b) => a - b));
      }),
      { numRuns: 200 },
    );
  });
});
