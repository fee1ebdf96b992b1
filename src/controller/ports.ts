/**
 * What the controller needs of the world, in its own words. The operator plugs in the API server, Redis, winston and
 * prom-client; the model test plugs in a scripted world and explores every interleaving.
 */
import type { EventReason, Reason } from "../api/reasons.ts";
import type { Job, KubeObject, LockedCronJob } from "../api/types.ts";
import type { Decision as LedgerDecision, Ledger } from "../domain/ledger.ts";
import type { LedgerState } from "../domain/decide/index.ts";
import type { JobView } from "../domain/job.ts";

/** One version of a ledger. Writing needs it, so that nobody can write on top of what he has not read. */
export interface LedgerRecord {
  namespace: string;
  /** Of the LockedCronJob. */
  name: string;
  uid: string;
  resourceVersion: string;
  contents: LedgerState;
  /** Its Lease was deleted, and only our finalizer keeps it. */
  heldInDeletion: boolean;
  /** The Lease's leaseTransitions: goes on even when the contents are lost. */
  token: number;
}

/**
 * Ledgers by compare-and-set. Errors are KubeErrors: `Conflict` when somebody else was first, `AlreadyExists` on create;
 * with outcome `unknown` the write may have happened.
 */
export interface Ledgers {
  /** The newest version that this process has seen, its own writes included. */
  cached(key: string): LedgerRecord | undefined;
  /** Linearizable. */
  read(key: string): Promise<LedgerRecord | undefined>;
  /** The last that this process has read in a Lease of this name, be it gone or garbled since; and that Lease's uid. */
  last(key: string): { uid: string; ledger: Ledger } | undefined;
  forget(key: string): void;
  /** Makes the Lease, without a ledger in it. */
  reserve(owner: LockedCronJob): Promise<LedgerRecord>;
  create(owner: LockedCronJob, ledger: Ledger): Promise<LedgerRecord>;
  /** PUT with resourceVersion and uid. With `owner` the Lease is handed to it (the ledger was a namesake's). */
  write(record: LedgerRecord, ledger: Ledger, owner?: LockedCronJob): Promise<LedgerRecord>;
  /** PUT as well: takes our finalizer off one that is held in deletion. */
  letGo(record: LedgerRecord): Promise<void>;
}

export interface Jobs {
  /** The Jobs of this LockedCronJob that the process has seen, its own creations included. */
  cached(key: string): readonly JobView[];
  /** Linearizable; also finds a Job that is not ours. The cache learns of what it finds, also of nothing. */
  read(namespace: string, name: string): Promise<JobView | undefined>;
  /** Linearizable. */
  list(key: string): Promise<JobView[]>;
  /** Exactly one POST, never repeated by anyone below. */
  create(job: Omit<Job, "metadata"> & { metadata: object }): Promise<JobView>;
  /** Removes our finalizer and no other; gone already is fine. */
  dropFinalizer(job: JobView): Promise<void>;
  /** `Foreground`: it stays visible, in deletion, until its pods are gone. */
  /** Puts the label back that our watches select by; gone already is fine. */
  putLabel(job: JobView, name: string): Promise<void>;
  delete(job: JobView, propagation?: "Background" | "Foreground"): Promise<void>;
  /** Its pods are ended, and no new ones made until somebody resumes it; gone already is fine. */
  suspend(job: JobView): Promise<void>;
  /** Linearizable: whether a pod of this Job is neither terminal nor deleted. */
  hasLivePods(namespace: string, jobUid: string): Promise<boolean>;
  /** The same by the name of the Job, whatever its uid is or was. */
  hasLivePodsNamed(namespace: string, jobName: string): Promise<boolean>;
}

export interface Owners {
  cached(key: string): LockedCronJob | undefined;
  /** Linearizable. */
  read(key: string): Promise<LockedCronJob | undefined>;
}

export type ElectionOutcome = "won" | "held" | "noQuorum";

/** The quorum lock as elections and runs use it. None of it rejects. */
export interface Locks {
  tryAcquire(
    key: string,
    value: string,
    leaseMs: number,
  ): Promise<{ outcome: ElectionOutcome; isValid(): boolean }>;
  extendMany(
    entries: readonly { key: string; value: string; leaseMs: number }[],
  ): Promise<readonly ("renewed" | "lost" | "noQuorum")[]>;
  release(key: string, value: string, leaseMs: number): Promise<unknown>;
}

/** The fence of a mutex as a replica has read it. */
export interface MutexRecord {
  /** `namespace/name`. */
  mutex: string;
  uid: string;
  resourceVersion: string;
  /** As holderOf() makes it; undefined: free. */
  holder: string | undefined;
  /** The highest token that was given to a holder; never goes back while the Lease exists. */
  token: number;
  /** A Lease of that name which is not ours: it is left alone. */
  foreign: boolean;
}

/** Fences of mutexes by compare-and-set. Errors are KubeErrors, as those of Ledgers. */
export interface MutexFences {
  /** The newest version that this process has seen. */
  cached(mutex: string): MutexRecord | undefined;
  /** Linearizable. */
  read(mutex: string): Promise<MutexRecord | undefined>;
  /** Makes it (record undefined), or writes holder and token into this very version. */
  write(
    mutex: string,
    record: MutexRecord | undefined,
    next: { holder: string | undefined; token: number },
  ): Promise<MutexRecord>;
}

/** Who the replicas are, and which processes can be proven dead. */
export interface Members {
  /** Names of the replicas that are alive as far as this one knows, itself included. */
  live(): readonly string[];
  /**
   * alive     it may be running
   * silent    its membership has run out: it may be dead, paused or cut off
   * dead      proven: its Lease was taken from it, without which it sends nothing
   * past      dead for longer than any request of it can still be on its way
   */
  stateOf(process: string): "alive" | "silent" | "dead" | "past";
  /**
   * Whether this process may send: its own Lease was its own a moment ago, so nobody has begun to count it as dead for
   * long enough. Never rejects.
   */
  confirm(): Promise<boolean>;
}

export interface EventSink {
  event(
    regarding: KubeObject,
    type: "Normal" | "Warning",
    reason: EventReason,
    message: string,
  ): void;
}

/** What happened, for logs and metrics. */
export interface Observer {
  /** A step that was decided; `outcome` says how it ended. */
  step(o: {
    key: string;
    action: string;
    reason: Reason;
    message: string;
    outcome: string;
    tick?: number;
    runId?: string;
    token?: number;
    error?: unknown;
    ms: number;
  }): void;
  elected(o: { key: string; tick: number; outcome: ElectionOutcome; ms: number }): void;
  launched(o: {
    key: string;
    tick: number;
    /** From when it was due; undefined for what is launched again. */
    latencyMs: number | undefined;
    rank: number;
    runId: string;
    token: number;
    attempt: number;
  }): void;
  missed(o: { key: string; reason: string; count: number }): void;
  claimConflict(): void;
  takeover(): void;
  jobCreate(outcome: "created" | "exists" | "foreign" | "refused" | "unknown"): void;
  /** A run has got its mutexes, or has given up. */
  mutexWait(o: { key: string; outcome: "taken" | "gaveUp"; ms: number }): void;
  /** A tick is kept waiting by a mutex. */
  mutexBusy(o: { key: string; mutex: string }): void;
  /** This replica has become the first in line for a run that others kept. */
  lockTakenOver(): void;
  /** A run has ended; how long it was locked. */
  lockHeld(o: { ms: number }): void;
  lockRenewal(o: { outcome: "renewed" | "lost" | "noQuorum" | "regained"; count: number }): void;
}

/** A seam for crash tests: called before the world learns of a step and after it has; production leaves it out. */
export type StepHook = (
  point:
    | "elected"
    | "claimed"
    | "fenced"
    | "granted"
    | "ended"
    | "created"
    | "started"
    | "finalizerDropped"
    | "statusWritten",
  key: string,
) => Promise<void>;

export type { LedgerDecision };
