/** What a run needs next, from its claim until it is off the ledger. */
import { describe, expect, it } from "vitest";
import {
  decide,
  type AttemptFate,
  type Decision,
  type Snapshot,
} from "../../src/domain/decide/index.ts";
import type { Run } from "../../src/domain/ledger.ts";
import {
  aJobView,
  aLedger,
  aLockedCronJob,
  anAttempt,
  aRun,
  aStartedRun,
  HOUR,
  NOON,
} from "../builders/objects.ts";
import { aSnapshot, present } from "../builders/snapshot.ts";

type Fields = Parameters<typeof aSnapshot>[0];
type Case = [situation: string, run: Run, more: Fields, want: Partial<Decision>];

const NOW = NOON + 1_000;
const LATER = { oursAt: () => NOW + 500 };
const GONE = { owner: undefined };
const running = aJobView({ hasLaunchFinalizer: false });
const finished = aJobView({
  hasLaunchFinalizer: false,
  outcome: "Complete",
  finishedAt: NOON + 900,
});

function decideOn(run: Run, more: Fields = {}): Decision {
  const ledger = present(aLedger({ lastTick: run.tick, runs: [run] }));
  return decide(aSnapshot({ ledger, ...more }));
}

function check(cases: Case[]): void {
  it.each(cases)("%s", (_, run, more, want) => {
    expect(decideOn(run, more)).toMatchObject(want);
  });
}

/** Attempts 1, 2, … with these fates; what is settled has none. */
function fates(...list: (AttemptFate | "settled")[]): { run: Run; fateOf: Snapshot["fateOf"] } {
  const attempts = list.map((fate, i) => anAttempt({ n: i + 1, settled: fate === "settled" }));
  return { run: aRun({ attempts }), fateOf: (_, { n }) => list[n - 1] as AttemptFate };
}

describe("a claim without a Job", () => {
  check([
    [
      "of ours whose POST has not left yet is sent",
      aRun(),
      { fate: "unsent" },
      { do: "send", n: 1 },
    ],
    [
      "is sent even when somebody else has taken over since: that attempt is ours alone",
      fates("unsent", "foreign").run,
      { fateOf: fates("unsent", "foreign").fateOf },
      { do: "send", n: 1 },
    ],
    [
      "is taken over when it has had time enough",
      aRun(),
      {},
      { do: "takeOver", reason: "TakeOver" },
    ],
    ["is left alone until then", aRun(), LATER, { do: "nothing", reason: "NotDue", at: NOW + 500 }],
    ["whose POST is in doubt is looked for, too", aRun(), { fate: "inDoubt" }, { do: "takeOver" }],
    [
      "whose Job is there is recorded, with the attempt that the Job bears",
      aRun(),
      { jobs: [aJobView({ attempt: 2 })] },
      { do: "recordStarted", jobUID: "job-1", n: 2, reason: "JobObserved" },
    ],
    [
      "which the one that made it records first",
      aRun(),
      { ...LATER, jobs: [aJobView()] },
      { do: "nothing", at: NOW + 500 },
    ],
    [
      "is not taken for started by a Job of the same name that is not of this run",
      aRun(),
      { jobs: [aJobView({ runId: "somebody else's" })] },
      { do: "takeOver" },
    ],
  ]);
});

describe("a claim whose LockedCronJob is gone", () => {
  const deleting = aLockedCronJob({}, { deletionTimestamp: "2026-01-01T12:00:00Z" });
  check([
    [
      "ends as soon as no POST can arrive any more",
      fates("settled", "past", "unsent").run,
      { ...GONE, fateOf: fates("settled", "past", "unsent").fateOf },
      { do: "abandon", missed: false, reason: "Deleted" },
    ],
    [
      "also while it is only being deleted",
      aRun(),
      { owner: deleting, fate: "unsent" },
      { do: "abandon" },
    ],
    [
      "also when one of the same name has been made",
      aRun({ of: "owner-0" }),
      { fate: "past" },
      { do: "abandon", missed: false },
    ],
    ["never gets a new attempt", aRun(), GONE, { do: "nothing", at: NOW + 5_000 }],
    [
      "waits for a POST of ours that is in doubt",
      aRun(),
      { ...GONE, fate: "inDoubt" },
      { do: "nothing", at: NOW + 5_000 },
    ],
    [
      "is recorded all the same when its Job is there",
      aRun(),
      { ...GONE, jobs: [aJobView()] },
      { do: "recordStarted" },
    ],
  ]);
});

describe("a refused Job", () => {
  const refusal = { reason: "Forbidden", message: "quota", retryAt: NOW + 100, count: 1 };
  const settled = aRun({ attempts: [anAttempt({ settled: true })], refusal });
  const doubtful = aRun({ attempts: [anAttempt(), anAttempt({ n: 2, settled: true })], refusal });
  check([
    [
      "is tried again when its time has come",
      settled,
      { now: NOW + 100 },
      { do: "takeOver", reason: "RetryAfterRefusal" },
    ],
    ["and not before", settled, {}, { do: "nothing", at: NOW + 100 }],
    [
      "first by the first in line",
      settled,
      { now: NOW + 100, rank: 1, standByMs: 80 },
      { do: "nothing", at: NOW + 180 },
    ],
    [
      "is given up for a newer tick",
      settled,
      { now: NOON + HOUR },
      { do: "abandon", missed: true, reason: "Superseded" },
    ],
    [
      "is given up when startingDeadlineSeconds are over",
      settled,
      { owner: aLockedCronJob({ startingDeadlineSeconds: 0 }) },
      { do: "abandon", missed: true, reason: "TooLate" },
    ],
    [
      "is not given up while a POST may still arrive: the tick would run after it was called missed",
      doubtful,
      { now: NOON + HOUR },
      { do: "takeOver" },
    ],
    [
      "waits for its time with a POST in doubt as well",
      doubtful,
      { oursAt: () => 0 },
      { do: "nothing", at: NOW + 100 },
    ],
    [
      "whose new attempt was not sent yet is sent",
      { ...settled, attempts: [anAttempt({ n: 2 })] },
      { fate: "unsent" },
      { do: "send", n: 2 },
    ],
  ]);
});

describe("a started run", () => {
  check([
    [
      "settles what can arrive no more, before anything else",
      { ...fates("settled", "past", "foreign", "unsent").run, jobUID: "job-1" },
      { fateOf: fates("settled", "past", "foreign", "unsent").fateOf, jobs: [aJobView()] },
      { do: "settle", ns: [2, 4], reason: "AttemptSettled" },
    ],
    [
      "keeps its Job while a POST may still arrive",
      aRun({ jobUID: "job-1" }),
      { jobs: [aJobView()] },
      { do: "nothing", at: NOW + 5_000 },
    ],
    [
      "lets its Job go when all is settled",
      aStartedRun(),
      { jobs: [aJobView()] },
      { do: "dropFinalizer", stray: false },
    ],
    [
      "whose launcher does so first",
      aStartedRun(),
      { ...LATER, rank: 1, jobs: [aJobView()] },
      { do: "nothing", at: NOW + 500 },
    ],
    [
      "but not before the first in line",
      aStartedRun(),
      { ...LATER, jobs: [aJobView()] },
      { do: "dropFinalizer" },
    ],
    [
      "that goes on is left alone",
      aStartedRun(),
      { jobs: [running] },
      { do: "nothing", reason: "NotDue" },
    ],
    [
      "whose Job has finished ends",
      aStartedRun(),
      { jobs: [finished] },
      { do: "finish", job: finished, reason: "JobFinished" },
    ],
    [
      "ends by the first in line; the others give it two seconds a rank",
      aStartedRun(),
      { rank: 1, standByMs: 80, jobs: [finished] },
      { do: "nothing", at: NOON + 900 + 2_080 },
    ],
    [
      "whose Job is not in the cache is looked for",
      aStartedRun(),
      {},
      { do: "lookForJob", reason: "JobGone", at: NOW + 5_000 },
    ],
    [
      "also when another Job has its name",
      aStartedRun(),
      { jobs: [aJobView({ uid: "job-2" })] },
      { do: "lookForJob" },
    ],
    [
      "whose Job has finished ends even while a POST may still arrive: the next tick need not wait for that",
      aRun({ jobUID: "job-1" }),
      { jobs: [aJobView({ outcome: "Failed", finishedAt: NOON })] },
      { do: "finish" },
    ],
  ]);
});

describe("an ended run", () => {
  const ended = aStartedRun({ ended: true });
  check([
    [
      "keeps its Job while a POST may still arrive",
      aRun({ jobUID: "job-1", ended: true }),
      { jobs: [aJobView({ outcome: "Complete", finishedAt: NOON })] },
      { do: "nothing", at: NOW + 5_000 },
    ],
    [
      "lets it go then",
      ended,
      { jobs: [aJobView({ outcome: "Complete", finishedAt: NOON })] },
      { do: "dropFinalizer", stray: false },
    ],
    ["leaves the ledger when its Job is free", ended, { jobs: [finished] }, { do: "close" }],
    ["leaves the ledger when its Job is gone", ended, {}, { do: "close" }],
  ]);
});

describe("a finalizer of which no run knows", () => {
  const stray = aJobView({ runId: "long ago", name: "report-1" });
  const ledger = present(aLedger({ lastTick: NOON }));
  const strays: [string, Fields, Partial<Decision>][] = [
    [
      "is dropped, but looked into first",
      { ledger, jobs: [stray], now: NOON + 2_000 },
      { do: "dropFinalizer", job: stray, stray: true },
    ],
    [
      "may be of a ledger that is newer than the cache: it is given two seconds",
      { ledger, jobs: [stray], now: NOON + 1_999 },
      { do: "nothing", at: NOON + 2_000 },
    ],
    [
      "waits until a lost ledger is made anew: the Job may be all that is known of its tick",
      { ledger: { state: "absent" }, jobs: [stray], now: NOON + 2_000 },
      { do: "initLedger" },
    ],
    [
      "is dropped when the LockedCronJob and its ledger are gone",
      { ...GONE, ledger: { state: "absent" }, jobs: [stray], now: NOON + 2_000 },
      { do: "dropFinalizer", stray: true },
    ],
    [
      "is not judged by a ledger that cannot be read",
      { ledger: { state: "newer", message: "" }, jobs: [stray], now: NOON + HOUR },
      { do: "nothing", reason: "LedgerUnreadable" },
    ],
  ];
  it.each(strays)("%s", (_, snapshot, want) => {
    expect(decide(aSnapshot(snapshot))).toMatchObject(want);
  });
});
