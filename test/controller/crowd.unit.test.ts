import { describe, expect, it } from "vitest";
import { createCrowd } from "../../src/controller/crowd.ts";
import { crowdMs } from "../../src/controller/turns.ts";
import { manualTime } from "./manual-time.ts";

const keys = (count: number): string[] => Array.from({ length: count }, (_, i) => `team/${i}`);

function setUp() {
  const time = manualTime();
  const over: number[] = [];
  const onOver = (): void => void over.push(time.clock.monotonic());
  return { time, over, crowd: createCrowd({ ...time, onOver }) };
}

describe("a crowd", () => {
  it("is busy until each of its keys is served", () => {
    const { crowd, over } = setUp();
    crowd.arrived(keys(16));
    for (const key of keys(15)) crowd.served(key);
    crowd.served("team/another");
    expect([crowd.busy(), over]).toEqual([true, []]);
    crowd.served("team/15");
    expect([crowd.busy(), over]).toEqual([false, [0]]);
  });

  it("knows whose tick is decided, until it is over or another tick of the same is due", () => {
    const { crowd } = setUp();
    crowd.arrived(keys(16));
    crowd.served("team/0");
    crowd.served("team/1");
    crowd.served("team/another");
    crowd.arrived(["team/1"]);
    const served = [...keys(16), "team/another"].filter(crowd.isServed);
    expect(served).toEqual(["team/0"]);
    for (const key of keys(16)) crowd.served(key);
    expect(keys(16).some(crowd.isServed)).toBe(false);
  });

  it("is none when few are due", () => {
    const { crowd, over, time } = setUp();
    crowd.arrived(keys(15));
    crowd.served("team/0");
    expect([crowd.busy(), over, time.pendingTimers()]).toEqual([false, [], 0]);
  });

  it("ends in time, served or not", async () => {
    const { crowd, over, time } = setUp();
    crowd.arrived(keys(100));
    await time.pass(crowdMs(100) - 1);
    expect(crowd.busy()).toBe(true);
    await time.pass(1);
    expect([crowd.busy(), over]).toEqual([false, [crowdMs(100)]]);
    for (const key of keys(100)) crowd.served(key);
    expect(over).toHaveLength(1);
  });

  it("takes up those that arrive meanwhile, and ends when it would have ended", async () => {
    const { crowd, time } = setUp();
    crowd.arrived(keys(100));
    await time.pass(500);
    crowd.arrived(["team/late"]);
    for (const key of keys(100)) crowd.served(key);
    expect(crowd.busy()).toBe(true);
    await time.pass(crowdMs(100) - 500);
    expect(crowd.busy()).toBe(false);
  });

  it("that was served leaves no timer, and the next one may begin at once", () => {
    const { crowd, time } = setUp();
    crowd.arrived(keys(20));
    for (const key of keys(20)) crowd.served(key);
    expect(time.pendingTimers()).toBe(0);
    crowd.arrived(keys(20));
    expect(crowd.busy()).toBe(true);
  });

  it("that was not leaves room for as long as it lasted", async () => {
    const { crowd, time } = setUp();
    crowd.arrived(keys(100));
    await time.pass(crowdMs(100));
    crowd.arrived(keys(100));
    expect(crowd.busy()).toBe(false);
    await time.pass(crowdMs(100));
    crowd.arrived(keys(100));
    expect(crowd.busy()).toBe(true);
  });
});
