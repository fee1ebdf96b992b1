import { describe, expect, it } from "vitest";
import { driftOf, elapsedSince, grantFrom, stampOf } from "../../src/lock/validity.ts";

function handClock() {
  const time = { wall: 1_000_000, mono: 500 };
  return {
    time,
    clock: { now: () => time.wall, monotonic: () => time.mono },
    pass: (ms: number) => {
      time.wall += ms;
      time.mono += ms;
    },
  };
}

const entry = { key: "k", value: "v", leaseMs: 10_000 };

describe("validity", () => {
  it("is the lease less what passed, less 1 % and 2 ms", () => {
    const { clock, pass } = handClock();
    const stamp = stampOf(clock);
    pass(30);
    const grant = grantFrom(entry, stamp, clock);
    expect(driftOf(10_000)).toBe(102);
    expect(grant?.remainingMs()).toBe(10_000 - 102 - 30);
    expect(grant?.validUntil).toBe(500 + 10_000 - 102);
  });

  it("is not granted when the lease was used up before the majority answered", () => {
    const { clock, pass } = handClock();
    const stamp = stampOf(clock);
    pass(10_000 - 102);
    expect(grantFrom(entry, stamp, clock)).toBeNull();
  });

  it("ends while the machine is suspended: the monotonic clock stands, the wall clock moves", () => {
    const { clock, time } = handClock();
    const grant = grantFrom(entry, stampOf(clock), clock);
    time.wall += 60_000;
    expect(grant?.isValid()).toBe(false);
  });

  it("is not extended by a wall clock that is set back an hour", () => {
    const { clock, time, pass } = handClock();
    const grant = grantFrom(entry, stampOf(clock), clock);
    time.wall -= 3_600_000;
    pass(9_000);
    expect(grant?.remainingMs()).toBe(10_000 - 102 - 9_000);
    pass(1_000);
    expect(grant?.isValid()).toBe(false);
  });

  it("counts by the clock that went further", () => {
    const { clock, time } = handClock();
    const stamp = stampOf(clock);
    time.wall += 5;
    time.mono += 7;
    expect(elapsedSince(stamp, clock)).toBe(7);
  });
});
