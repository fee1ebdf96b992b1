import { expect, it } from "vitest";
import { createWatchdog, type Watchdog } from "../../src/controller/watchdog.ts";
import { rankOf } from "../../src/domain/election.ts";
import { claim } from "../../src/domain/claim.ts";
import { newLedger, recordStarted, type Ledger } from "../../src/domain/ledger.ts";
import type { LedgerRecord } from "../../src/controller/ports.ts";
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
  o: { live?: () => readonly string[]; onTakenOver?: () => void } = {},
) {
  const renewals: number[] = [];
  const contents = { state: "present" as const, ledger: started(launchedBy) };
  const record = { contents } as LedgerRecord;
  const watchdog: Watchdog = createWatchdog({
    ledgers: {
      withRuns: () => [KEY],
      cached: () => record,
      last: () => undefined,
      forget: () => undefined,
      reserve: async () => record,
      read: async () => record,
      create: async () => record,
      write: async () => record,
      letGo: async () => undefined,
    },
    owners: { cached: () => undefined, read: async () => undefined },
    locks: {
      tryAcquire: async () => ({ outcome: "held", isValid: () => false }),
      async extendMany(entries) {
        for (const { leaseMs } of entries) {
          expect(leaseMs).toBe(LEASE_MS);
          renewals.push(time.clock.monotonic());
        }
        return entries.map(() => "renewed" as const);
      },
      release: async () => undefined,
    },
    members: { live: o.live ?? (() => REPLICAS) },
    events: { event: () => undefined },
    observe: { lockRenewal: () => undefined, lockTakenOver: o.onTakenOver ?? (() => undefined) },
    lockPrefix: "lockedcron:c1",
    onLost: () => undefined,
    clock: time.clock,
    timers: time.timers,
    replica,
    process: `${replica}/1`,
  });
  return { watchdog, renewals };
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
  const { watchdog } = watchdogOf(second, time, first, {
    live: () => live,
    onTakenOver: () => taken.push(second),
  });
  await watchdog.round();
  expect(taken).toEqual([]);
  live = REPLICAS.filter((replica) => replica !== first);
  await watchdog.round();
  await watchdog.round();
  expect(taken).toEqual([second]);
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
