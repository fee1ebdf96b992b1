/**
 * The objects that the operator reads and writes, as raw JSON: only the fields it looks at are named, everything else
 * passes through untouched (typed clients would drop it).
 */

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  /** RFC 3339. */
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

export type ConcurrencyPolicy = "Allow" | "Forbid" | "Replace" | "Skip" | "Queue";

export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: unknown;
}

export interface Container {
  name: string;
  env?: EnvVar[];
  [field: string]: unknown;
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: {
    containers: Container[];
    initContainers?: Container[];
    [field: string]: unknown;
  };
}

export interface JobTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: { template: PodTemplate; [field: string]: unknown };
}

export type DstPolicy = "Kubernetes" | "WallClock" | "RunOnce";

/** When to run. Exactly one of `schedule` and `schedules` is there. */
export interface ScheduleSpec {
  schedule?: string;
  schedules?: readonly { schedule: string; timeZone?: string; name?: string }[];
  /** Also the default of those in `schedules`. */
  timeZone?: string;
  dstPolicy?: DstPolicy;
  /** What `H` and jitter are hashed from; default: `namespace/name`. */
  hashSeed?: string;
  jitterSeconds?: number;
  /** RFC 3339. */
  notBefore?: string;
  notAfter?: string;
}

export interface LockedCronJobSpec extends ScheduleSpec {
  startingDeadlineSeconds?: number;
  concurrencyPolicy?: ConcurrencyPolicy;
  /** With Queue: how many ticks wait at most. */
  queueLimit?: number;
  /** Which of the ticks that were missed run after all; `limit` is for All. */
  catchUp?: { policy?: "None" | "Latest" | "All"; limit?: number };
  onResume?: "CatchUp" | "FromNow";
  onScheduleChange?: "CatchUp" | "FromNow";
  suspend?: boolean;
  successfulJobsHistoryLimit?: number;
  failedJobsHistoryLimit?: number;
  jobTemplate: JobTemplate;
  lock?: LockSpec;
}

export type OnLost = "Continue" | "Suspend" | "Delete";

/** spec.lock; an edit applies to the next run. */
export interface LockSpec {
  /** Lease of the run's lock in seconds; it is renewed each third of it. */
  leaseSeconds?: number;
  /** How long a tick waits for mutexes that are busy. */
  waitSeconds?: number;
  /** How often it looks meanwhile. */
  retryIntervalSeconds?: number;
  /** The lock is kept for so long at least, and the run ended after so long at most. */
  atLeastSeconds?: number;
  atMostSeconds?: number;
  /** `name`, of the own namespace, or `namespace/name`. */
  mutexes?: string[];
  /** What becomes of a run whose lock somebody else has taken. */
  onLost?: OnLost;
  /** Without a Redis majority: go on with the ledger's compare-and-set alone, or wait for the majority. */
  onQuorumLoss?: "Proceed" | "Wait";
}

/** One line of status.decisions: what became of a tick, and why. Times are RFC 3339. */
export interface DecisionRecord {
  time: string;
  tick: string;
  decision: "Launched" | "Missed" | "Finished" | "Waiting";
  reason: string;
  message: string;
  replica: string;
}

export interface ActiveJobReference {
  apiVersion: string;
  kind: string;
  namespace: string;
  name: string;
  uid?: string;
}

/** The lock of the newest run that is active. */
export interface LockStatus {
  key?: string;
  holder?: string;
  /** Mutexes that the run holds or waits for, `namespace/name`. */
  mutexes?: string[];
  /** RFC 3339: how long it stays locked if nobody renews it any more; as old as the status. */
  validUntil?: string;
  /** The replica that renews it. */
  renewedBy?: string;
}

export interface LockedCronJobStatus {
  observedGeneration?: number;
  conditions?: Condition[];
  active?: ActiveJobReference[];
  activeCount?: number;
  lastScheduleTime?: string;
  lastSuccessfulTime?: string;
  lastFailureTime?: string;
  consecutiveFailures?: number;
  nextScheduleTime?: string;
  nextScheduleTimes?: string[];
  /** The schedules with numbers for each `H`. */
  resolvedSchedules?: { schedule: string; timeZone: string; name?: string }[];
  /** The newest fencing token given to a run. */
  token?: number;
  lock?: LockStatus;
  /** The newest trigger that was carried out. */
  lastTrigger?: string;
  /** How far the newest backfill is. */
  backfill?: { id?: string; cursor?: string };
  decisions?: DecisionRecord[];
  /** Release of the tz database that the times above were found with. */
  tzdata?: string;
}

export interface LockedCronJob extends KubeObject {
  spec: LockedCronJobSpec;
  status?: LockedCronJobStatus;
}

export interface JobCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Job extends KubeObject {
  spec?: unknown;
  status?: {
    conditions?: JobCondition[];
    startTime?: string;
    completionTime?: string;
    active?: number;
  };
}

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string | null;
    leaseDurationSeconds?: number;
    /** RFC 3339 with microseconds. */
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}
