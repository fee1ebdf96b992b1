/**
 * What is gone through. Each is exhaustive within its bounds: every interleaving of the requests of its processes with
 * every move of the cluster, of people and of watches, and with as many faults as it allows.
 */
import type { LockedCronJob, LockedCronJobSpec } from "../../../src/api/types.ts";
import { aLockedCronJob, at, MINUTE, NOON } from "../../builders/objects.ts";
import type { Scenario } from "./types.ts";

/** Each namesake has a uid of its own and is as old as the moment it was made. */
function owners(spec: Partial<LockedCronJobSpec> = {}): Scenario["owner"] {
  return (n, now): LockedCronJob =>
    aLockedCronJob(spec, {
      uid: `owner-${n}`,
      creationTimestamp: at(n === 1 ? NOON - 30 * MINUTE : now),
    });
}

/** Moments a little after these minutes past noon. */
function minutes(...list: number[]): number[] {
  return list.map((minute) => NOON + minute * MINUTE + 5_000);
}

const ONE = ["a/1"];
const TWO = ["a/1", "b/1"];
const THREE = ["a/1", "b/1", "c/1"];

/** Two replicas, one tick that is due, up to three attempts, no fault. */
const oneTick: Scenario = {
  processes: TWO,
  owner: owners(),
  times: minutes(0),
  faults: {},
  maxAttempts: 3,
  elections: ["won", "held"],
};
const twoAttempts: Scenario = { ...oneTick, maxAttempts: 2 };
const oneAttempt: Scenario = { ...oneTick, maxAttempts: 1, elections: ["won"] };
const alone: Scenario = { ...twoAttempts, processes: ONE };

/** It waits for five minutes. */
const MUTEX: Partial<LockedCronJobSpec> = { lock: { mutexes: ["db"], waitSeconds: 300 } };

export const scenarios = {
  /** An answer is lost (the write arrives at once, late, or never), a process dies, a person deletes the Job. */
  launch: { ...oneTick, faults: { lost: 1, buried: 1, killed: 1 } },
  launchAlone: { ...alone, faults: { lost: 2 } },
  withoutLedger: { ...twoAttempts, noLedger: true, faults: { lost: 1 } },
  withoutRedis: { ...twoAttempts, elections: ["noQuorum"], faults: { lost: 1 } },
  /** The next tick comes due at any moment of the first one's launch; the policy is Forbid. */
  nextTick: { ...oneAttempt, times: minutes(0, 60) },
  nextTickAlone: {
    ...alone,
    times: minutes(0, 60),
    slowPods: true,
    faults: { lost: 1, killed: 1 },
  },
  nextTickAllowed: {
    ...alone,
    owner: owners({ concurrencyPolicy: "Allow" }),
    times: minutes(0, 60),
    faults: { lost: 1 },
  },
  refused: { ...twoAttempts, times: minutes(0, 10), faults: { refused: 1 } },
  refusedAlone: {
    ...alone,
    times: minutes(0, 10, 60),
    faults: { refused: 1, lost: 1 },
  },
  notSent: { ...twoAttempts, faults: { notSent: 1 } },
  tooLate: {
    ...twoAttempts,
    owner: owners({ startingDeadlineSeconds: 120 }),
    times: minutes(0, 10),
    faults: { refused: 1 },
  },
  foreignJobAlone: {
    ...alone,
    maxAttempts: 3,
    foreignJob: true,
    times: minutes(0, 10),
    faults: { lost: 1, foreignDeleted: 1 },
  },
  ledgerDeleted: { ...oneTick, faults: { ledgerDeleted: 1 } },
  ledgerDeletedAlone: { ...alone, faults: { ledgerDeleted: 1, lost: 1 } },
  /** Two replicas make the ledger at the same time, and it is deleted once it has served. */
  ledgerMadeAndDeleted: { ...twoAttempts, noLedger: true, faults: { ledgerDeleted: 1 } },
  ledgerDeletedNextTick: {
    ...oneAttempt,
    processes: ONE,
    owner: owners({ concurrencyPolicy: "Allow" }),
    times: minutes(0, 60),
    faults: { ledgerDeleted: 1 },
  },
  /** Watches overtake answers, and tell of every version. */
  overtakenAlone: {
    ...oneAttempt,
    processes: ONE,
    everyVersion: true,
    busyWatches: true,
    slowAnswers: true,
    slowPods: true,
    faults: { killed: 1 },
  },
  /** Another LockedCronJob uses the same mutex, and may leave its fence behind or lose its ledger. */
  mutex: { ...oneAttempt, owner: owners(MUTEX), rivalRuns: 1 },
  mutexAlone: {
    ...alone,
    owner: owners(MUTEX),
    times: minutes(0, 10),
    rivalRuns: 2,
    faults: { lost: 1, rivalCrashed: 1 },
  },
  mutexKilledAlone: {
    ...alone,
    owner: owners(MUTEX),
    times: minutes(0, 10),
    rivalRuns: 1,
    slowPods: true,
    faults: { killed: 1, rivalDeleted: 1 },
  },
  mutexNotWaitedForAlone: {
    ...alone,
    owner: owners({ lock: { mutexes: ["db"] } }),
    rivalRuns: 1,
    faults: { lost: 1, ownerDeleted: 1, rivalDeleted: 1 },
  },
  namesakeAlone: { ...alone, faults: { ownerDeleted: 1, ownerCreated: 1, lost: 1 } },
} satisfies Record<string, Scenario>;

/** The same with wider bounds: minutes each, and up to 4 GB. */
export const wide = {
  launch: { ...oneTick, faults: { lost: 2, buried: 1, killed: 1 } },
  launchFourAttempts: { ...oneTick, maxAttempts: 4, faults: { lost: 1, buried: 1 } },
  nextTick: {
    ...oneTick,
    maxAttempts: 1,
    times: minutes(0, 60),
    slowPods: true,
    faults: { killed: 1 },
  },
  refused: { ...twoAttempts, times: minutes(0, 10), faults: { refused: 1, lost: 1 } },
  foreignJob: {
    ...twoAttempts,
    foreignJob: true,
    times: minutes(0, 10),
    faults: { lost: 1, foreignDeleted: 1 },
  },
  ledgerDeleted: { ...twoAttempts, faults: { ledgerDeleted: 1, lost: 1 } },
  ledgerDeletedNextTick: {
    ...oneAttempt,
    processes: ONE,
    owner: owners({ concurrencyPolicy: "Allow" }),
    times: minutes(0, 60),
    faults: { ledgerDeleted: 1, lost: 1 },
  },
  namesake: { ...oneAttempt, faults: { ownerDeleted: 1, ownerCreated: 1 } },
  namesakeTwoAttempts: { ...twoAttempts, faults: { ownerDeleted: 1, ownerCreated: 1 } },
} satisfies Record<string, Scenario>;

/** Wider still with a rival for the mutex. */
export const wideMutex = {
  mutex: {
    ...oneAttempt,
    owner: owners(MUTEX),
    times: minutes(0, 10),
    rivalRuns: 2,
    slowPods: true,
    faults: { rivalCrashed: 1 },
  },
} satisfies Record<string, Scenario>;

/** For walks: three replicas, four ticks, every version of every object, and plenty of everything that can go wrong. */
const anything: Scenario = {
  processes: THREE,
  owner: owners(),
  times: minutes(0, 10, 60, 61, 120, 180),
  faults: { lost: 10, crashed: 5, restarted: 5, killed: 3, refused: 3, notSent: 3 },
  maxAttempts: Infinity,
  elections: ["won", "held", "noQuorum"],
  everyVersion: true,
  busyWatches: true,
  slowAnswers: true,
  slowPods: true,
};

export const walks = {
  forbid: anything,
  allow: { ...anything, owner: owners({ concurrencyPolicy: "Allow" }) },
  deadline: { ...anything, owner: owners({ startingDeadlineSeconds: 300 }) },
  people: {
    ...anything,
    noLedger: true,
    foreignJob: true,
    faults: { ...anything.faults, foreignDeleted: 1, ownerDeleted: 2, ownerCreated: 2 },
  },
  ledgerDeleted: { ...anything, faults: { ...anything.faults, ledgerDeleted: 1 } },
  mutex: {
    ...anything,
    owner: owners({ lock: { mutexes: ["db"], waitSeconds: 3600 } }),
    rivalRuns: 8,
    faults: { ...anything.faults, rivalCrashed: 3, rivalDeleted: 1 },
  },
} satisfies Record<string, Scenario>;
