import { describe, expect, it } from "vitest";
import { createWatchdog, type Watchdog } from "../../src/controller/watchdog.ts";
import { rankOf } from "../../src/domain/election.ts";
import { claim } from "../../src/domain/claim.ts";
import { endRun } from "../../src/domain/ledger-end.ts";
import { newLedger, recordStarted, type Ledger } from "../../src/domain/ledger.ts";
import type { LedgerRecord } from "../../src/controller/ports.ts";
import { aRecord } from "../builders/context.ts";
import { aLockedCronJob } from "../builders/objects.ts";
import { manualTime, type ManualTime } from "./manual-time.ts";

const KEY = "team/report";
const REPLICAS = ["a", "b", "c"];
const [first, second, third] = REPLICAS.toSorted(
  (x, y) => rankOf(x, REPLICAS, KEY) - rankOf(y, REPLICAS, KEY),
) as [string, string, string];
const LEASE_MS = 15_000;
const RUN = { tick: 1_000, runId: "run", jobName: "report-0", lockKey: "k", lockValue: "v" };

function started(by: string): Ledger {
  const ledger = newLedger({ owner: "uid", schedule: "[]", anchor: 0 });
  const locks = { lock: { leaseSeconds: LEASE_MS / 1000 } };
  const claimed = claim(ledger, {
    ...RUN,
    locks,
    by: `${by}/1`,
    why: "Due",
    decisions: [],
    missed: 0,
  });
  const entry = { at: 0, tick: RUN.tick, reason: "Due", message: "", replica: by };
  return recordStarted(claimed, RUN.runId, "job-uid", 1, { ...entry, decision: "Launched" });
}

/** The watchdog of one replica, which believes that all three live; each renewal is a moment of `time`. */
function watchdogOf(
  replica: string,
  time: ManualTime,
  launchedBy: string,
  o: {
    live?: () => readonly string[];
    onTakenOver?: () => void;
    /** What Redis says to each renewal; default: renewed. */
    answer?: () => "renewed" | "noQuorum";
    /** The watch of ledgers stands still, and this is what the API server says when it is asked; rejects: it is away. */
    stale?: () => Promise<LedgerRecord | undefined>;
  } = {},
) {
  const renewals: number[] = [];
  const told: string[] = [];
  const contents = { state: "present" as const, ledger: started(launchedBy) };
  const record = { contents } as LedgerRecord;
  const released: string[] = [];
  let there: LedgerRecord | undefined = record;
  const watchdog: Watchdog = createWatchdog({
    ledgers: {
      withRuns: () => (there === undefined ? [] : [KEY]),
      cached: () => there,
      last: () => undefined,
      forget: () => undefined,
      reserve: async () => record,
      read: o.stale ?? (async () => record),
      create: async () => record,
      write: async () => record,
      letGo: async () => undefined,
    },
    owners: { cached: () => aLockedCronJob(), read: async () => undefined },
    locks: {
      tryAcquire: async () => ({ outcome: "held", isValid: () => false }),
      async extendMany(entries) {
        for (const { leaseMs } of entries) {
          expect(leaseMs).toBe(LEASE_MS);
          renewals.push(time.clock.monotonic());
        }
        return entries.map(() => o.answer?.() ?? "renewed");
      },
      release: async (key, value) => released.push(`${key} ${value}`),
    },
    members: { live: o.live ?? (() => REPLICAS) },
    events: { event: (_, type, reason, message) => told.push(`${type} ${reason}: ${message}`) },
    observe: { lockRenewal: () => undefined, lockTakenOver: o.onTakenOver ?? (() => undefined) },
    lockPrefix: "lockedcron:c1",
    onLost: () => undefined,
    clock: time.clock,
    timers: time.timers,
    isStale: () => o.stale !== undefined,
    replica,
    process: `${replica}/1`,
  });
  const becomes = (ledger: Ledger | undefined): void => {
    there = ledger === undefined ? undefined : aRecord(ledger);
  };
  return { watchdog, renewals, told, released, becomes };
}

async function renewalsOf(replica: string, launchedBy: string, ms: number): Promise<number[]> {
  const time = manualTime();
  const { watchdog, renewals } = watchdogOf(replica, time, launchedBy);
  watchdog.start();
  await time.pass(ms);
  await watchdog[Symbol.asyncDispose]();
  return renewals;
}

it("the first in line renews at once, and each third of the lease", async () => {
  expect(await renewalsOf(first, second, 11_000)).toEqual([0, 5_000, 10_000]);
});

it("so does the replica that launched, once: its election's lease is short, and the first in line may just have died", async () => {
  expect(await renewalsOf(third, third, 16_000)).toEqual([0, 5_000, 15_000]);
});

it("the others give a head start, and then see to it that no more than a half, or two thirds, of the lease is used up", async () => {
  expect(await renewalsOf(second, first, 10_000)).toEqual([1_000, 9_000]);
  expect(await renewalsOf(third, first, 13_000)).toEqual([2_000, 12_000]);
});

it("one that becomes the first in line says so, once", async () => {
  const time = manualTime();
  const taken: string[] = [];
  let live = REPLICAS;
  const { watchdog, told } = watchdogOf(second, time, first, {
    live: () => live,
    onTakenOver: () => taken.push(second),
  });
  await watchdog.round();
  expect(taken).toEqual([]);
  live = REPLICAS.filter((replica) => replica !== first);
  await watchdog.round();
  await watchdog.round();
  expect(taken).toEqual([second]);
  expect(told).toEqual([
    `Normal LockTakenOver: Replica ${second} renews the lock of job report-0 from now on`,
  ]);
});

it("the replica that launched says that the run has its lock, once it has it for the lease of a run", async () => {
  const time = manualTime();
  let answer: "renewed" | "noQuorum" = "noQuorum";
  const { watchdog, told } = watchdogOf(third, time, third, { answer: () => answer });
  await watchdog.round();
  expect(told).toEqual([]);
  answer = "renewed";
  await watchdog.round();
  await time.pass(LEASE_MS);
  await watchdog.round();
  expect(told).toEqual(["Normal LockAcquired: Job report-0 holds k with a lease of 15 s, token 1"]);
  const other = watchdogOf(first, time, third);
  await other.watchdog.round();
  expect(other.told).toEqual([]);
});

describe("when a run has left its ledger", () => {
  const without = newLedger({ owner: "uid", schedule: "[]", anchor: 0 });

  it("the first two in line release its lock once more: whoever ended it may have died before he did", async () => {
    for (const replica of [first, second]) {
      const { watchdog, released, becomes } = watchdogOf(replica, manualTime(), third);
      await watchdog.round();
      becomes(without);
      await watchdog.round();
      await watchdog.round();
      expect(released).toEqual(["k v"]);
    }
  });

  it("the others do not, and nobody does when the ledger itself was deleted", async () => {
    const other = watchdogOf(third, manualTime(), second);
    const deleted = watchdogOf(first, manualTime(), second);
    for (const { watchdog, becomes } of [other, deleted]) {
      await watchdog.round();
      becomes(watchdog === other.watchdog ? without : undefined);
      await watchdog.round();
    }
    expect([...other.released, ...deleted.released]).toEqual([]);
  });
});

describe("while the watch of ledgers stands still", () => {
  const recordOf = (ledger: Ledger): LedgerRecord => aRecord(ledger);
  const over = endRun(started(first), RUN.runId, {
    decision: {
      at: 1,
      tick: RUN.tick,
      decision: "Finished",
      reason: "JobFinished",
      message: "",
      replica: first,
    },
  });

  it.each<[what: string, stale: () => Promise<LedgerRecord | undefined>, renewed: number]>([
    [
      "a run that lives by the ledger as it is now keeps its lock",
      async () => recordOf(started(first)),
      1,
    ],
    ["the lock of one that is over is not renewed", async () => recordOf(over), 0],
    ["nor that of one whose ledger is gone", async () => undefined, 0],
    ["a run of which nobody can tell counts as alive", () => Promise.reject(new Error("away")), 1],
  ])("%s", async (_, stale, renewed) => {
    const { watchdog, renewals } = watchdogOf(first, manualTime(), second, { stale });
    await watchdog.round();
    expect(renewals).toHaveLength(renewed);
  });
});

it("counts as held what it renews as the first in line", async () => {
  const time = manualTime();
  const held = async (replica: string): Promise<number> => {
    const { watchdog } = watchdogOf(replica, time, first);
    await watchdog.round();
    return watchdog.held();
  };
  expect(await held(first)).toBe(1);
  expect(await held(second)).toBe(0);
});
