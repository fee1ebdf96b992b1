import { describe, expect, it } from "vitest";
import { EventReason } from "../../src/api/reasons.ts";
import { createStuckLocks, isStuck } from "../../src/controller/stuck-locks.ts";
import { aContext, aRecord } from "../builders/context.ts";
import { aLedger, aLockedCronJob, NOON } from "../builders/objects.ts";
import { manualTime } from "./manual-time.ts";

const BOUND_MS = 10_000;

function theLocks() {
  const time = manualTime();
  return { time, locks: createStuckLocks(time.clock) };
}

describe("a lock that is held", () => {
  it("is stuck when it is for longer than any lease, and the ledger stands still", async () => {
    const { time, locks } = theLocks();
    expect(locks.held("a", NOON, BOUND_MS)).toBe(false);
    await time.pass(BOUND_MS);
    expect(locks.held("a", NOON, BOUND_MS)).toBe(false);
    await time.pass(1);
    expect(locks.held("a", NOON, BOUND_MS)).toBe(true);
    expect(locks.held("b", NOON, BOUND_MS)).toBe(false);
  });

  it("is not while others launch", async () => {
    const { time, locks } = theLocks();
    locks.held("a", NOON, BOUND_MS);
    await time.pass(2 * BOUND_MS);
    expect(locks.held("a", NOON + 1, BOUND_MS)).toBe(false);
  });

  it("that is stuck stays so when ticks are launched without it, until it is found free", async () => {
    const { time, locks } = theLocks();
    locks.held("a", NOON, BOUND_MS);
    await time.pass(2 * BOUND_MS);
    locks.held("a", NOON, BOUND_MS);
    expect(locks.held("a", NOON + 1, BOUND_MS)).toBe(true);
    locks.free("a");
    expect(locks.held("a", NOON + 1, BOUND_MS)).toBe(false);
  });
});

describe("a stuck lock", () => {
  const ledger = aLedger();
  const owner = aLockedCronJob({ lock: { leaseSeconds: 30 } });
  const rig = (o: { stuck: boolean; live: string }) => {
    const said: string[] = [];
    const bounds: number[] = [];
    const context = aContext({
      stuckLocks: {
        held(_key, _tick, boundMs) {
          bounds.push(boundMs);
          return o.stuck;
        },
      },
      ledgers: { read: () => Promise.resolve(aRecord(ledger, { resourceVersion: o.live })) },
      events: { event: (_, __, reason, message) => void said.push(`${reason}: ${message}`) },
    });
    return { said, bounds, run: () => isStuck(context, owner, aRecord(ledger), ledger, "the-key") };
  };

  it("is told of, with its key and the way out", async () => {
    const { said, bounds, run } = rig({ stuck: true, live: "1" });
    expect(await run()).toBe(true);
    expect(bounds).toEqual([45_000]);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(
      new RegExp(`^${EventReason.LockStuck}: The lock the-key is held .*DEL`),
    );
  });

  it("is none when the ledger has moved on: a run may keep it", async () => {
    const { said, run } = rig({ stuck: true, live: "2" });
    expect(await run()).toBe(false);
    expect(said).toEqual([]);
  });

  it("is none as long as a lease may last", async () => {
    expect(await rig({ stuck: false, live: "1" }).run()).toBe(false);
  });
});
