import { describe, expect, it } from "vitest";
import {
  candidateOf,
  createElections,
  type Candidate,
  type Election,
} from "../../src/controller/elections.ts";
import type { ElectionOutcome, Locks } from "../../src/controller/ports.ts";
import { aLockedCronJob, NOON } from "../builders/objects.ts";
import { manualTime } from "./manual-time.ts";

const LEASE_MS = 3_000;

function candidate(i: number, tick = 1): Candidate {
  const name = `job-${i}`;
  return {
    key: `team/${name}`,
    runId: `${name}-${tick}.uid`,
    jobName: `${name}-${tick}`,
    lockKey: `lock:${name}`,
  };
}

const candidates = (from: number, to: number): Candidate[] =>
  Array.from({ length: to - from }, (_, i) => candidate(from + i));

type Answer = { outcome: ElectionOutcome; isValid?: () => boolean };

/** Elections over locks that answer as told and remember what was asked, in one list per turn of the event loop. */
function setUp(
  upcoming: readonly Candidate[] = [],
  answer: (lockKey: string) => Answer = () => ({ outcome: "won" }),
) {
  const time = manualTime();
  const asked: string[][] = [];
  const released: [string, string][] = [];
  const lookedAt: string[] = [];
  let waiting = [...upcoming];
  let inThisTurn: string[] | undefined;
  let nonce = 0;
  const locks: Pick<Locks, "tryAcquire" | "release"> = {
    tryAcquire(key) {
      if (inThisTurn === undefined) {
        asked.push((inThisTurn = []));
        process.nextTick(() => (inThisTurn = undefined));
      }
      inThisTurn.push(key);
      const { outcome, isValid = () => outcome === "won" } = answer(key);
      return new Promise((resolve) => setImmediate(() => resolve({ outcome, isValid })));
    },
    release: (key, value) => Promise.resolve(released.push([key, value])),
  };
  const elections = createElections({
    locks,
    timers: time.timers,
    random: () => ++nonce / 2 ** 48,
    leaseMs: () => LEASE_MS,
    next(count, passOver) {
      const open = waiting.slice(0, count).filter(({ key }) => !passOver(key));
      lookedAt.push(...open.map(({ key }) => key));
      return open;
    },
  });
  /** As the queue does: what is begun does not come next any more. */
  const elect = (one: Candidate): Promise<Election> => {
    waiting = waiting.filter(({ key }) => key !== one.key);
    return elections.elect(one);
  };
  return { elections, elect, asked, released, lookedAt, time };
}

const keysOf = (of: readonly Candidate[]): string[] => of.map(({ lockKey }) => lockKey);

describe("an election", () => {
  it("of a tick alone asks for its lock, with a value of its own for each try", async () => {
    const { elect, asked, released, time } = setUp();
    const [first, second] = [await elect(candidate(0)), await elect(candidate(0))];
    expect(asked).toEqual([["lock:job-0"], ["lock:job-0"]]);
    expect(first).toMatchObject({ outcome: "won", leaseMs: LEASE_MS });
    expect(first.lockValue).toMatch(/^job-0-1\.uid#/);
    expect(second.lockValue).not.toBe(first.lockValue);
    expect([released, time.pendingTimers()]).toEqual([[], 0]);
  });

  it("takes the locks of the ticks that come next along, and asks no more for them", async () => {
    const crowd = candidates(0, 10);
    const { elect, asked } = setUp(crowd);
    const values = new Set<string>();
    for (const one of crowd) {
      const election = await elect(one);
      expect(election.outcome).toBe("won");
      expect(election.lockValue.startsWith(`${one.runId}#`)).toBe(true);
      values.add(election.lockValue);
    }
    expect(asked).toEqual([keysOf(crowd)]);
    expect(values.size).toBe(10);
  });

  it("never holds more than 32 ahead, and fetches more before the last is used", async () => {
    const crowd = candidates(0, 100);
    const { elect, asked } = setUp(crowd);
    for (const one of crowd) await elect(one);
    expect(asked.length).toBeLessThan(10);
    expect(asked.flat()).toEqual(keysOf(crowd));
    expect(asked[0]).toEqual(keysOf(candidates(0, 33)));
  });

  it("looks once at each of the ticks that come next", async () => {
    const crowd = candidates(0, 100);
    const { elect, lookedAt } = setUp(crowd);
    for (const one of crowd) await elect(one);
    expect(lookedAt).toEqual(crowd.slice(1).map(({ key }) => key));
  });

  it.each([
    ["was somebody else's", { outcome: "held" } as const],
    ["found no majority", { outcome: "noQuorum" } as const],
    ["has run out", { outcome: "won", isValid: () => false } as const],
  ])("that was held ahead and %s is held again", async (_, before) => {
    let answer: Answer = before;
    const { elect, asked, released } = setUp([candidate(1)], () => answer);
    await elect(candidate(0));
    answer = { outcome: "won" };
    expect(await elect(candidate(1))).toMatchObject({ outcome: "won" });
    expect(asked).toEqual([["lock:job-0", "lock:job-1"], ["lock:job-1"]]);
    expect(released.length).toBe(before.outcome === "won" ? 1 : 0);
  });

  it("of another tick of the same lock gives the one held ahead back first", async () => {
    const { elect, asked, released } = setUp([candidate(1)]);
    await elect(candidate(0));
    const election = await elect(candidate(1, 2));
    expect(election.lockValue).toMatch(/^job-1-2\.uid#/);
    expect(released).toEqual([["lock:job-1", expect.stringMatching(/^job-1-1\.uid#/)]]);
    expect(asked.at(-1)).toEqual(["lock:job-1"]);
  });
});

describe("what was held ahead and is not used", () => {
  it("is given back well before it would run out", async () => {
    const { elect, released, time } = setUp(candidates(0, 4));
    await elect(candidate(0));
    await elect(candidate(2));
    await time.pass(LEASE_MS / 3 - 1);
    expect(released).toEqual([]);
    await time.pass(1);
    expect(released.map(([key]) => key)).toEqual(["lock:job-1", "lock:job-3"]);
    await time.pass(LEASE_MS);
    expect(released).toHaveLength(2);
  });

  it("is given back when the replica goes, when it was won", async () => {
    const { elect, elections, released, time } = setUp(candidates(0, 3), (key) => ({
      outcome: key === "lock:job-1" ? "held" : "won",
    }));
    await elect(candidate(0));
    elections.close();
    await time.pass(0);
    expect(released.map(([key]) => key)).toEqual(["lock:job-2"]);
  });
});

describe("a candidate", () => {
  it.each([
    ["Forbid", "lockedcron:c1:team/report"],
    ["Allow", `lockedcron:c1:team/report@${NOON / 1000}`],
  ] as const)("with policy %s goes for %s", (concurrencyPolicy, lockKey) => {
    const owner = aLockedCronJob({ concurrencyPolicy });
    const { uid } = owner.metadata;
    expect(candidateOf(owner, { tick: NOON }, { subMinute: false }, "lockedcron:c1")).toEqual({
      key: "team/report",
      jobName: `report-${NOON / 60_000}`,
      runId: `report-${NOON / 60_000}.${uid.slice(0, 8)}`,
      lockKey,
    });
  });
});
