/** spec.lock as one run has it, and the names of mutexes. Pure. */
import { splitKey } from "../api/names.ts";
import { Reason } from "../api/reasons.ts";
import type { LockedCronJob, OnLost } from "../api/types.ts";

/**
 * spec.lock as it was when the tick was claimed: an edit applies to the next run. What is at its default is left out, for
 * the ledger is written on each tick.
 */
export interface LockTerms {
  leaseSeconds?: number;
  atLeastSeconds?: number;
  atMostSeconds?: number;
  onLost?: Exclude<OnLost, "Continue">;
  /** `namespace/name`, sorted: everybody takes them in this order, so that two runs cannot wait for each other. */
  mutexes?: string[];
}

/** A run that waits for its mutexes; any replica may go on with it. */
export interface Waiting {
  /** The process that claimed it, and that tries first. */
  by: string;
  /** Wall clock, ms. */
  since: number;
  until: number;
  retryMs: number;
  /** What it was last seen to wait for; absent until it has been kept waiting. */
  on?: { mutex: string; reason: string; message: string };
}

export const DEFAULT_LEASE_SECONDS = 30;
const DEFAULT_RETRY_SECONDS = 1;

/**
 * How a tick that is claimed now is locked.
 *
 * @param mutexes as mutexesOf() names them
 * @param by the process that claims
 * @param dueAt when the tick was due, ms; undefined for a run that somebody asked for, which is never too late
 */
export function locksOf(
  owner: LockedCronJob,
  mutexes: string[],
  { dueAt, now, by }: Claiming,
): { lock?: LockTerms; waiting?: Waiting; lockedAt?: number } {
  const { leaseSeconds, atLeastSeconds, atMostSeconds, onLost } = owner.spec.lock ?? {};
  const lock: LockTerms = {
    ...(leaseSeconds === undefined || leaseSeconds === DEFAULT_LEASE_SECONDS
      ? {}
      : { leaseSeconds }),
    ...(atLeastSeconds === undefined || atLeastSeconds === 0 ? {} : { atLeastSeconds }),
    ...(atMostSeconds === undefined ? {} : { atMostSeconds }),
    ...(onLost === undefined || onLost === "Continue" ? {} : { onLost }),
    ...(mutexes.length === 0 ? {} : { mutexes }),
  };
  return {
    ...(Object.keys(lock).length === 0 ? {} : { lock }),
    ...(lock.atLeastSeconds === undefined ? {} : { lockedAt: now }),
    ...(mutexes.length === 0 ? {} : { waiting: waitingOf(owner, { dueAt, now, by }) }),
  };
}

interface Claiming {
  dueAt: number | undefined;
  now: number;
  by: string;
}

function waitingOf({ spec }: LockedCronJob, { dueAt, now, by }: Claiming): Waiting {
  const { waitSeconds = 0, retryIntervalSeconds = DEFAULT_RETRY_SECONDS } = spec.lock ?? {};
  const late = spec.startingDeadlineSeconds;
  const deadline = late === undefined || dueAt === undefined ? Infinity : dueAt + late * 1000;
  const until = Math.min(now + waitSeconds * 1000, deadline);
  return { by, since: now, until, retryMs: retryIntervalSeconds * 1000 };
}

export function leaseMsOf(terms: LockTerms | undefined): number {
  return (terms?.leaseSeconds ?? DEFAULT_LEASE_SECONDS) * 1000;
}

export type Mutexes =
  | { ok: true; mutexes: string[] }
  | { ok: false; reason: typeof Reason.MutexNotAllowed; message: string };

/**
 * The mutexes of a LockedCronJob by their full names. A name without a namespace is of its own; another namespace has to
 * be opened by the operator's administrator, since whoever takes a mutex keeps others from running.
 *
 * @param shared namespaces whose mutexes may be used from any other
 */
export function mutexesOf(owner: LockedCronJob, shared: readonly string[]): Mutexes {
  const own = owner.metadata.namespace;
  const names = (owner.spec.lock?.mutexes ?? []).map((name) =>
    name.includes("/") ? name : `${own}/${name}`,
  );
  const refused = names.find((name) => {
    const { namespace } = splitKey(name);
    return namespace !== own && !shared.includes(namespace);
  });
  if (refused !== undefined) {
    return {
      ok: false,
      reason: Reason.MutexNotAllowed,
      message:
        `spec.lock.mutexes: ${refused} is of another namespace, whose mutexes are not shared: use one of ${own}, ` +
        `or start the operator with --shared-mutex-namespaces=${splitKey(refused).namespace}`,
    };
  }
  return { ok: true, mutexes: [...new Set(names)].toSorted() };
}

/** Key of a mutex in Redis. A run's own has a namespace where this has the word, and namespaces have no colon. */
export function mutexLockKey(prefix: string, mutex: string): string {
  return `${prefix}:mutex:${mutex}`;
}

/**
 * Who holds a mutex, as its fence says: `namespace/name/<lock value>`. The lock value is the claim's own, run id and
 * nonce: a tick that is claimed once more, after its ledger was lost, is another holder.
 */
export function holderOf(key: string, lockValue: string): string {
  return `${key}/${lockValue}`;
}

export interface Holder {
  /** Of the LockedCronJob: `namespace/name`. */
  key: string;
  lockValue: string;
  runId: string;
  jobName: string;
}

/** undefined when no operator has written it. */
export function parseHolder(text: string): Holder | undefined {
  const [namespace = "", name = "", lockValue = "", ...rest] = text.split("/");
  const runId = lockValue.slice(0, lockValue.lastIndexOf("#"));
  const jobName = runId.slice(0, runId.lastIndexOf("."));
  if (namespace === "" || jobName === "" || rest.length > 0) return undefined;
  return { key: `${namespace}/${name}`, lockValue, runId, jobName };
}
