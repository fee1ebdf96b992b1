import { describe, expect, it } from "vitest";
import { createQuorumLock } from "../../../src/lock/index.ts";
import { redisBed } from "../fixture.ts";
import { type Fault, runHistory } from "./run.ts";

const bed = redisBed(5);
const ALL: readonly Fault[] = ["pause", "cut", "lossy", "delay", "wipe", "bareMajorityThenWipe"];
const LEASE_MS = 500;
describe("random faults", () => {
  it.each([1, 2])("never give a lock to two, seed %i", async (seed) => {
    const result = await runHistory({
      servers: bed.servers,
      createQuorumLock,
      seed,
      leaseMs: LEASE_MS,
      faults: ALL,
      durationMs: 10_000,
      stopEarly: false,
    });
    expect(result.violations).toEqual([]);
    expect(result.badTtls).toEqual([]);
    expect(result.acquired).toBeGreaterThan(5);
  });

  it("leave nothing of an attempt that failed", async () => {
    const result = await runHistory({
      servers: bed.servers,
      createQuorumLock,
      seed: 3,
      leaseMs: 30_000,
      faults: ["cut", "lossy"],
      durationMs: 6_000,
      stopEarly: false,
      counter: true,
    });
    expect(result.residue).toEqual([]);
    expect(result.violations).toEqual([]);
  });
});
