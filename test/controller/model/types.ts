/** The world of the model: plain immutable values, so that a state can be kept, compared and gone back to. */
import type { Job, Lease, LockedCronJob } from "../../../src/api/types.ts";
import type { ElectionOutcome } from "../../../src/controller/ports.ts";
import type { AttemptFate } from "../../../src/domain/decide/index.ts";

/** What a replica asks of the world. Between asking and being answered anything else may happen. */
export type Request =
  | { verb: "elect" }
  | { verb: "get"; of: "owner" }
  | { verb: "get"; of: "lease" }
  | { verb: "get"; of: "fence" }
  /** The ledger of the other LockedCronJob that uses the mutex. */
  | { verb: "get"; of: "rival" }
  | { verb: "get"; of: "job"; name: string }
  | { verb: "list"; of: "jobs" }
  | { verb: "list"; of: "pods"; jobUid: string }
  | { verb: "list"; of: "podsNamed"; jobName: string }
  | { verb: "create"; of: "lease"; body: Lease }
  | { verb: "update"; of: "lease"; body: Lease }
  | { verb: "create"; of: "fence"; body: Lease }
  | { verb: "update"; of: "fence"; body: Lease }
  | { verb: "create"; of: "job"; body: Job }
  | { verb: "unhold"; of: "job"; name: string; uid: string }
  | { verb: "delete"; of: "job"; name: string; uid: string };

/** Why a request failed; the session makes the KubeError of it that the real client would throw. */
export type Failure = "Conflict" | "NotFound" | "AlreadyExists" | "Forbidden" | "NotSent" | "Lost";

export type Answer =
  { ok: object | undefined } | { elected: ElectionOutcome } | { failed: Failure };

export type WatchEvent =
  | { of: "lease"; gone: boolean; object: Lease }
  | { of: "fence"; gone: boolean; object: Lease }
  | { of: "job"; gone: boolean; object: Job }
  | { of: "owner"; gone: boolean; object: LockedCronJob };

/** What a replica's caches hold. */
export interface Known {
  owner: LockedCronJob | undefined;
  lease: Lease | undefined;
  fence?: Lease;
  jobs: readonly Job[];
}

/** What a replica remembers of its own POSTs; `over`: sent longer ago than a request can be on its way. */
export interface Note {
  runId: string;
  n: number;
  state: "sent" | "answered";
  over: boolean;
}

/** Everything that a step of the reconciler reads before its first request. */
export interface Start {
  known: Known;
  notes: readonly Note[];
  now: number;
  past: readonly string[];
  /** What the step is of; a reconcile if absent. */
  program?: Program;
}

/** The sweep of fences whose run is over. */
export type Program = "sweep";

/**
 * Another LockedCronJob with the same mutex, as the protocol has it: it claims, takes the fence when that is free, has pods,
 * is over, and frees the fence. Its fence is judged by the real code like any other.
 */
export interface Rival {
  /** Its n-th run. */
  run: number;
  phase: "claimed" | "fenced" | "running" | "finished" | "over";
  /** Its ledger is gone, with its LockedCronJob or by hand. */
  ledgerLost: boolean;
  /** The highest token that it was given. */
  token: number;
}

export type Item = { answer: Answer } | { event: WatchEvent };

/** One process of a replica: between two steps, or in the middle of one. */
export interface Process {
  name: string;
  dead: boolean;
  known: Known;
  notes: readonly Note[];
  /** In the middle of a step: how it began, what has come in since, what it waits for. */
  busy?: {
    start: Start;
    items: readonly Item[];
    request: Request;
    /** The request was answered, and the answer is on its way. */
    answer?: Answer;
  };
}

/** A write whose sender has given up on it, or died: it may be carried out at any later moment, or never. */
export interface Flight {
  by: string;
  request: Request;
}

export interface Created {
  ownerUid: string;
  tick: number;
  token: number;
}

/** Faults so far; each kind has a bound. */
export const FAULTS = [
  "lost",
  /** A process dies and is proven dead; what it had sent never arrives. */
  "buried",
  /** A process dies; what it had sent may still arrive. */
  "crashed",
  "restarted",
  "refused",
  "notSent",
  "killed",
  "ownerDeleted",
  "ownerCreated",
  "ledgerDeleted",
  "foreignDeleted",
  /** The rival ends and leaves its fence behind. */
  "rivalCrashed",
  "rivalDeleted",
] as const;
export type Fault = (typeof FAULTS)[number];

export interface World {
  now: number;
  owner: LockedCronJob | undefined;
  ownersMade: number;
  lease: Lease | undefined;
  fence: Lease | undefined;
  fenceWrites: number;
  rival: Rival | undefined;
  jobs: readonly Job[];
  /** Jobs of which a pod is alive. */
  pods: readonly { jobUid: string; ownerUid: string }[];
  /** Writes so far: the next resourceVersion of each kind, and the next uid. */
  leaseWrites: number;
  jobWrites: number;
  created: readonly Created[];
  /** Ticks of the present LockedCronJob that were recorded as missed, by whichever ledger. */
  missed: number;
  flights: readonly Flight[];
  processes: readonly Process[];
  /**
   * What each process's watches have still to tell it; used only when they tell every version. Else a watch tells how an
   * object is now, which needs no memory.
   */
  watches: readonly (readonly WatchEvent[])[];
  /** Processes that have died without it having been proven for long enough. */
  dead: readonly string[];
  /** Processes proven dead for longer than a request of theirs can be on its way. */
  past: readonly string[];
  faults: Readonly<Record<Fault, number>>;
  /** The policy is Forbid. */
  forbid: boolean;
  /** Watches tell every version of an object; else they may skip to the newest. */
  everyVersion: boolean;
  /** What was violated. */
  broken?: string;
}

export interface Scenario {
  /** Processes at the beginning: `<replica>/1`. */
  processes: readonly string[];
  /** The n-th LockedCronJob of the name. */
  owner(n: number, now: number): LockedCronJob;
  /** Moments that the clock steps through; the first is the beginning. */
  times: readonly number[];
  /** How often each fault may happen. */
  faults: Partial<Record<Fault, number>>;
  /** Attempts of one run explored; a take-over beyond it is cut off. */
  maxAttempts: number;
  elections: readonly ElectionOutcome[];
  /** There is no ledger at the beginning. */
  noLedger?: boolean;
  /** The status is never written. */
  noStatus?: boolean;
  /** A Job of the tick's name that is not ours is there from the beginning. */
  foreignJob?: boolean;
  /** Pods outlive their Job until the kubelet says otherwise. */
  slowPods?: boolean;
  /** Watches also tell in the middle of a step. */
  busyWatches?: boolean;
  everyVersion?: boolean;
  /** What a watch tells may overtake an answer. */
  slowAnswers?: boolean;
  /** Runs of a rival for the mutex. */
  rivalRuns?: number;
}

/** Takes one safeguard away. */
export interface Tamper {
  request?(request: Request): Request;
  /** What fateOf answers instead. */
  fate?(fate: AttemptFate): AttemptFate;
  /** A dead process counts as past while its requests are still on their way. */
  impatient?: boolean;
  /** What isOver answers instead. */
  holderOver?(over: boolean): boolean;
}
