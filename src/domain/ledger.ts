/**
 * The ledger of one LockedCronJob: what was decided about its ticks. It lives as an annotation on a Lease and changes
 * only by compare-and-set, so every function here is pure: it takes a version and returns the next one.
 *
 * A run goes  claimed (no jobUID) -> started (jobUID known) -> ended (Job finished or gone) -> off the ledger.
 * With mutexes it is claimed without an attempt, and gets its first one when all of them are held (ledger-locks.ts).
 * An attempt authorises exactly one POST of the run's Job. It is settled once that POST can no longer arrive; until all
 * are, an ended run stays, so that its Job does.
 */
import type { LockTerms, Waiting } from "./lock-terms.ts";

import type { Reason } from "../api/reasons.ts";
import type { Manual } from "./manual.ts";

/** Versions of the JSON that carries it (ledger-json.ts). The second has runs that wait for mutexes or keep their locks. */
export const LEDGER_VERSION = 2;

/** Oldest decisions fall off: the ledger must stay small, it is written on each tick. */
export const MAX_DECISIONS = 10;

/**
 * Open runs of one LockedCronJob; with policy Allow a tick beyond it waits until one ends. The ledger is one annotation,
 * of which the API server takes 256 KiB, and it is written on each tick.
 */
export const MAX_RUNS = 250;

export interface Attempt {
  /** 1, 2, … */
  n: number;
  /** The process that may send this attempt's POST: `<replica>/<nonce>`. */
  by: string;
  settled: boolean;
}

export interface Run {
  /** The tick in milliseconds since the epoch. */
  tick: number;
  runId: string;
  jobName: string;
  /** Fencing token: strictly increasing per LockedCronJob. */
  token: number;
  lockKey: string;
  lockValue: string;
  attempts: Attempt[];
  /** How it is locked; absent when nothing of it differs from the defaults. */
  lock?: LockTerms;
  waiting?: Waiting;
  /** When it got its locks, wall clock ms; kept with lock.atLeastSeconds only. */
  lockedAt?: number;
  /** Why the tick was claimed; goes into the decision once its Job exists. */
  why: string;
  /** uid of the deleted namesake that this run was of. Kept only until its attempts are settled. */
  of?: string;
  /** Set once the run's Job is known to exist. From then on no attempt is ever added. */
  jobUID?: string;
  /** Its Job is over and has no live pods: it excludes nothing any more, only its attempts are to be settled. */
  ended?: boolean;
  /** Somebody asked for it: `tick` is when it was claimed, or the past tick that runs again. */
  manual?: Manual;
  /** Why the run is ended before its time. Set before its Job is deleted. */
  stop?: { reason: Reason; message: string };
  /** It has ended, and lock.atLeastSeconds keeps its locks until then (wall clock, ms): until then it excludes others. */
  keptUntil?: number;
  /** Set when the API server refused the last attempt; the next one waits until `retryAt` (wall clock, ms). */
  refusal?: { reason: string; message: string; retryAt: number; count: number };
}

export interface Decision {
  /** Wall clock of the replica that decided, ms. */
  at: number;
  tick: number;
  decision: "Launched" | "Missed" | "Finished" | "Waiting";
  reason: string;
  message: string;
  replica: string;
}

export interface Ledger {
  version: number;
  /** uid of the LockedCronJob; a ledger of a deleted namesake counts as absent, but its token goes on. */
  owner: string;
  /** Schedule and zone that `anchor` belongs to. */
  schedule: string;
  /** Ticks count from here: creation, or the last edit of the schedule. Milliseconds. */
  anchor: number;
  /** Every tick up to and including this one is decided. Milliseconds; 0 when none was. */
  lastTick: number;
  /** The newest token given; mirrored in the Lease's leaseTransitions. */
  token: number;
  runs: Run[];
  decisions: Decision[];
  /** Tick of the newest launched run, ms. */
  lastLaunched?: number;
  lastSuccess?: number;
  lastFailure?: number;
  consecutiveFailures?: number;
  /** The newest triggers that were carried out, oldest first. */
  triggers?: string[];
  /** The newest backfill: every tick of its range up to `cursor` (ms) was launched again. */
  backfill?: { id: string; cursor: number };
  /** It was seen suspended, and not resumed yet. */
  suspended?: boolean;
  /** Ticks that will never run, counted since the ledger began. */
  missed: number;
}

export function newLedger(
  init: Pick<Ledger, "owner" | "schedule" | "anchor"> & Partial<Ledger>,
): Ledger {
  return {
    version: 1,
    lastTick: 0,
    token: 0,
    runs: [],
    decisions: [],
    missed: 0,
    ...init,
  };
}

/** True while a POST may still arrive for this run. */
export function hasUnsettled(run: Run): boolean {
  return run.attempts.some((a) => !a.settled);
}

/** True while the ledger itself must not vanish: it alone knows of POSTs that may still arrive. */
export function mustStay(ledger: Ledger): boolean {
  return ledger.runs.some(hasUnsettled);
}

export function findRun(ledger: Ledger, runId: string): Run | undefined {
  return ledger.runs.find((r) => r.runId === runId);
}

/** Marks every tick up to `tick` decided without a run. */
export function miss(ledger: Ledger, tick: number, count: number, decision: Decision): Ledger {
  return {
    ...ledger,
    lastTick: Math.max(ledger.lastTick, tick),
    missed: ledger.missed + count,
    decisions: appendDecisions(ledger.decisions, [decision]),
  };
}

/**
 * Authorises one more POST. The list of unsettled attempts only grows: forgetting one would let the finalizer go while
 * its POST may still arrive. Settled ones can do no harm and are dropped.
 */
export function addAttempt(
  ledger: Ledger,
  runId: string,
  by: string,
): { ledger: Ledger; n: number } {
  const run = findRun(ledger, runId);
  if (run === undefined || run.jobUID !== undefined) {
    throw new Error(`run ${runId} takes no further attempt`);
  }
  const n = Math.max(...run.attempts.map((a) => a.n)) + 1;
  const attempts = [...run.attempts.filter((a) => !a.settled), { n, by, settled: false }];
  return { ledger: replaceRun(ledger, { ...run, attempts }), n };
}

/** The run's Job exists, and it bears attempt `n`, whose POST has thus arrived. */
export function recordStarted(
  ledger: Ledger,
  runId: string,
  jobUID: string,
  n: number,
  decision: Decision,
): Ledger {
  const manual = findRun(ledger, runId)?.manual !== undefined;
  const started: Ledger = {
    ...ledger,
    ...(manual ? {} : { lastLaunched: Math.max(decision.tick, ledger.lastLaunched ?? 0) }),
    decisions: appendDecisions(ledger.decisions, [decision]),
  };
  return changeRun(started, runId, (run) => {
    const { refusal: _, ...rest } = run;
    return {
      ...rest,
      jobUID,
      attempts: run.attempts.map((a) => (a.n === n ? { ...a, settled: true } : a)),
    };
  });
}

/** The run is to end before its time. */
export function stopRun(ledger: Ledger, runId: string, stop: NonNullable<Run["stop"]>): Ledger {
  return changeRun(ledger, runId, (run) => ({ ...run, stop }));
}

/** These attempts' POSTs were answered, or their processes are proven dead. */
export function settle(ledger: Ledger, runId: string, ns: readonly number[]): Ledger {
  return changeRun(ledger, runId, (run) => ({
    ...run,
    attempts: run.attempts.map((a) => (ns.includes(a.n) ? { ...a, settled: true } : a)),
  }));
}

/** The API server refused attempt `n` for good (undefined: none was sent, as it was plain to see): the next one waits. */
export function recordRefusal(
  ledger: Ledger,
  runId: string,
  n: number | undefined,
  refusal: { reason: string; message: string; retryAt: number },
): Ledger {
  return changeRun(settle(ledger, runId, n === undefined ? [] : [n]), runId, (run) => ({
    ...run,
    refusal: { ...refusal, count: (run.refusal?.count ?? 0) + 1 },
  }));
}

/** What excludes others, and what the status shows as active: claims, and runs that may have live pods. */
export function activeRuns(ledger: Ledger): Run[] {
  return ledger.runs.filter((r) => r.of === undefined && !isOver(r));
}

/** It excludes nothing any more: its pods are confirmed gone, and nothing keeps its locks. */
export function isOver(run: Run): boolean {
  return run.ended === true && run.keptUntil === undefined;
}

export function changeRun(ledger: Ledger, runId: string, change: (run: Run) => Run): Ledger {
  const run = findRun(ledger, runId);
  return run === undefined ? ledger : replaceRun(ledger, change(run));
}

export function replaceRun(ledger: Ledger, run: Run): Ledger {
  return { ...ledger, runs: ledger.runs.map((r) => (r.runId === run.runId ? run : r)) };
}

export function appendDecisions(old: readonly Decision[], added: readonly Decision[]): Decision[] {
  return [...old, ...added].slice(-MAX_DECISIONS);
}
