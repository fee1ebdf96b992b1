import { performance } from "node:perf_hooks";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Alarm, createAlarms } from "../../src/lock/hold/alarms.ts";
import { createHold } from "../../src/lock/hold/hold.ts";
import { createHandle } from "../../src/lock/hold/handle.ts";
import { grantFrom, stampOf } from "../../src/lock/validity.ts";
import { systemClock } from "../../src/clock.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  vi.spyOn(performance, "now").mockImplementation(() => Date.now());
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("one timer for many holds", () => {
  const rung: string[] = [];
  const alarm = (name: string, inMs: number, ring = () => undefined as void): Alarm => ({
    dueAt: performance.now() + inMs,
    place: -1,
    ring() {
      rung.push(name);
      ring();
    },
  });
  beforeEach(() => {
    rung.length = 0;
  });

  it("wakes each when it is due, in whatever order they were set", () => {
    const alarms = createAlarms();
    for (const ms of [300, 100, 200]) alarms.set(alarm(`${ms}`, ms));
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(99);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(rung).toEqual(["100"]);
    vi.advanceTimersByTime(200);
    expect(rung).toEqual(["100", "200", "300"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not wake what was called off, also by one that rings at the same moment", () => {
    const alarms = createAlarms();
    const off = alarm("off", 100);
    const one = alarm("one of two", 200, () => alarms.cancel(two));
    const two = alarm("one of two", 200, () => alarms.cancel(one));
    for (const each of [off, one, two]) alarms.set(each);
    alarms.cancel(off);
    alarms.cancel(off);
    vi.advanceTimersByTime(1_000);
    expect(rung).toEqual(["one of two"]);
  });

  it("wakes again what sets itself again, and what was set anew at its new time only", () => {
    const alarms = createAlarms();
    const again = alarm("again", 100, () => {
      if (rung.length > 2) return;
      again.dueAt += 100;
      alarms.set(again);
    });
    const moved = alarm("moved", 50);
    alarms.set(again);
    alarms.set(moved);
    alarms.cancel(moved);
    moved.dueAt = performance.now() + 250;
    alarms.set(moved);
    vi.advanceTimersByTime(1_000);
    expect(rung).toEqual(["again", "again", "moved", "again"]);
  });

  it("keeps all apart while a thousand come and go", () => {
    const alarms = createAlarms();
    const all = Array.from({ length: 1_000 }, (_, i) => alarm(String(i), 10 + ((i * 37) % 500)));
    for (const one of all) alarms.set(one);
    const gone = all.filter((_, i) => i % 3 === 0);
    for (const one of gone) alarms.cancel(one);
    vi.advanceTimersByTime(600);
    const left = all.flatMap((_, i) => (i % 3 === 0 ? [] : [String(i)]));
    expect(rung.toSorted()).toEqual(left.toSorted());
  });
});

describe("several keys under one handle", () => {
  const grant = (key: string, leaseMs: number) =>
    grantFrom({ key, value: "v", leaseMs }, stampOf(systemClock), systemClock)!;

  it("are valid for as long as the least of them, and the signal says so then", () => {
    const port = {
      extendMany: async () => [],
      release: async () => ({ outcome: "released" as const, perNode: [] }),
    };
    const hold = createHold({
      port,
      clock: systemClock,
      alarms: createAlarms(),
      observer: {},
      grants: [grant("a", 9_000), grant("b", 3_000), grant("c", 6_000)],
      watchdog: false,
      maxHoldMs: Infinity,
    });
    const handle = createHandle(hold, undefined);
    expect(handle.remainingMs()).toBe(3_000 - 32);
    vi.advanceTimersByTime(2_967);
    expect([handle.isHeld(), handle.signal.aborted]).toEqual([true, false]);
    vi.advanceTimersByTime(1);
    expect([handle.isHeld(), handle.signal.aborted]).toEqual([false, true]);
    expect(handle.signal.reason).toMatchObject({ reason: "deadline", keys: ["a", "b", "c"] });
  });
});

describe("a hold that is not renewed", () => {
  const NO_QUORUM = { outcome: "noQuorum", reason: "nodes", perNode: [] } as const;
  const made = (leaseMs: number, watchdog: boolean) => {
    const asked: number[] = [];
    const released: number[] = [];
    const port = {
      extendMany: async (entries: readonly { leaseMs: number }[]) => {
        asked.push(...entries.map((entry) => entry.leaseMs));
        return entries.map(() => NO_QUORUM);
      },
      release: async (_key: string, _value: string, ms: number) => {
        released.push(ms);
        return { outcome: "unknown" as const, perNode: [] };
      },
    };
    const first = grantFrom({ key: "k", value: "v", leaseMs }, stampOf(systemClock), systemClock)!;
    const hold = createHold({
      port,
      clock: systemClock,
      alarms: createAlarms(),
      observer: {},
      grants: [first],
      watchdog,
      maxHoldMs: Infinity,
    });
    return { handle: createHandle(hold, undefined), asked, released };
  };

  it("for longer by hand is renewed by the watchdog as before, and owed for as long as was asked for", async () => {
    const { handle, asked, released } = made(3_000, true);
    await handle.extend(60_000);
    expect(asked).toEqual([60_000]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked.slice(1)).toEqual(expect.arrayContaining([3_000]));
    await handle.release();
    expect(released).toEqual([60_000]);
  });

  it("is lost for whoever looks at the signal after its deadline, before any timer", () => {
    const { handle } = made(3_000, false);
    expect(handle.signal.aborted).toBe(false);
    // The event loop was kept busy: the clock has gone on, no timer has rung.
    vi.setSystemTime(Date.now() + 3_000);
    expect(handle.signal.reason).toMatchObject({ reason: "deadline" });
  });
});
