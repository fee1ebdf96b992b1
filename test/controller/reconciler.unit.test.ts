import { expect, it } from "vitest";
import type { LedgerRecord } from "../../src/controller/ports.ts";
import { createReconciler } from "../../src/controller/reconciler.ts";
import { createScheduleCache } from "../../src/controller/schedule-cache.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { aContext, aRecord } from "../builders/context.ts";
import { aJobView, aLedger, aLockedCronJob, aStartedRun, HOUR, NOON } from "../builders/objects.ts";
import { ourTurns } from "../builders/turns.ts";

const KEY = "team/report";

/** One replica before one LockedCronJob, a second past noon. */
function aReconciler(owner: ReturnType<typeof aLockedCronJob>, ledger: Ledger) {
  const created: string[] = [];
  const asked: string[] = [];
  const agenda = new Map<string, number>();
  let record: LedgerRecord = aRecord(ledger);
  const context = aContext({
    owners: { cached: () => owner },
    ledgers: {
      cached: () => record,
      read: async () => record,
      write: async (_, next) => (record = aRecord(next)),
    },
    jobs: {
      cached: () => [],
      read: async () => undefined,
      hasLivePods: async (_, uid) => {
        asked.push(uid);
        return true;
      },
      create: async ({ metadata }) => {
        created.push((metadata as { name: string }).name);
        return aJobView();
      },
    },
    locks: { tryAcquire: async () => ({ outcome: "won" as const, isValid: () => true }) },
    attempts: { sending: () => undefined, answered: () => undefined, fateOf: () => "past" },
    mutexes: { busyOn: () => undefined },
  });
  const { reconcile } = createReconciler({
    context,
    schedules: createScheduleCache(),
    turns: ourTurns(),
    rankDelayMs: 75,
    rank: () => 0,
    clockSkewMs: () => 0,
    dueAtOnce: () => 1,
    agenda: {
      set: (key, at) => void agenda.set(key, at),
      delete: (key) => void agenda.delete(key),
    },
    followUp: () => undefined,
    onServed: () => undefined,
    onSettled: () => undefined,
  });
  return { reconcile, created, asked, agenda };
}

/** Their Jobs were deleted, and pods of theirs are left on a node that nobody reaches. */
const lingering = Array.from({ length: 20 }, (_, i) =>
  aStartedRun({ tick: NOON - (i + 1) * HOUR, jobUID: `gone-${i}`, runId: `run-${i}` }),
);

it("runs that have to wait for their pods hold up no tick that may run beside them", async () => {
  const owner = aLockedCronJob({ concurrencyPolicy: "Allow" });
  const ledger = aLedger({ lastTick: NOON - HOUR, runs: lingering });
  const { reconcile, created, asked } = aReconciler(owner, ledger);
  await reconcile(KEY);
  expect(asked).toEqual(lingering.map((run) => run.jobUID));
  expect(created).toEqual([`report-${NOON / 60_000}`]);
});

it("and are looked at again, also when nothing else is to be done", async () => {
  const ledger = aLedger({ lastTick: NOON, runs: lingering.slice(0, 1) });
  const { reconcile, created, agenda } = aReconciler(aLockedCronJob(), ledger);
  expect(await reconcile(KEY)).toEqual({ kind: "again", at: NOON + 6_000 });
  expect(created).toEqual([]);
  expect(agenda.get(KEY)).toBe(NOON + HOUR);
});
