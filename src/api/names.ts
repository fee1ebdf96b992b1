/** Every name that the operator writes into a cluster, in one place. */

export const GROUP = "lockedcron.io";
export const VERSION = "v1alpha1";
export const API_VERSION = `${GROUP}/${VERSION}`;
export const KIND = "LockedCronJob";
export const PLURAL = "lockedcronjobs";

/** On Jobs, their pods and the ledger Lease: the name of the LockedCronJob. What our watches select by. */
export const NAME_LABEL = `${GROUP}/name`;
/** On Leases: what the Lease is for. */
export const COMPONENT_LABEL = `${GROUP}/component`;
export const LEDGER_COMPONENT = "ledger";
export const REPLICA_COMPONENT = "replica";
export const MUTEX_COMPONENT = "mutex";

/** Native CronJob's own annotation, kept so that tools reading it go on working. RFC 3339, in the job's time zone. */
export const SCHEDULED_TIMESTAMP_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp";
export const RUN_ID_ANNOTATION = `${GROUP}/run-id`;
export const TOKEN_ANNOTATION = `${GROUP}/token`;
export const ATTEMPT_ANNOTATION = `${GROUP}/attempt`;
export const TICK_ANNOTATION = `${GROUP}/tick`;
/** On Jobs and their pods: the names of the schedules that the tick belongs to, separated by commas. */
export const SCHEDULE_NAMES_ANNOTATION = `${GROUP}/schedule-names`;
export const LOCK_KEY_ANNOTATION = `${GROUP}/lock-key`;
export const LOCK_VALUE_ANNOTATION = `${GROUP}/lock-value`;
/** On Jobs: spec.lock as the run has it, so that a lost ledger knows it again. */
export const LOCK_TERMS_ANNOTATION = `${GROUP}/lock`;
export const LEDGER_ANNOTATION = `${GROUP}/ledger`;
/** On a LockedCronJob, by people: start one run now, once for each id; `Override`: beside whatever is active. */
export const TRIGGER_ANNOTATION = `${GROUP}/trigger`;
export const TRIGGER_POLICY_ANNOTATION = `${GROUP}/trigger-policy`;
/** On a LockedCronJob, by people: run the ticks of a past range again, once for each id. JSON, see docs/manual-runs.md. */
export const BACKFILL_ANNOTATION = `${GROUP}/backfill`;
/** On Jobs of such runs: `trigger` or `backfill`, and its id. */
export const MANUAL_ANNOTATION = `${GROUP}/manual`;
/** What `kubectl create job --from=cronjob/…` writes; tools tell such Jobs by it. */
export const INSTANTIATE_ANNOTATION = "cronjob.kubernetes.io/instantiate";
export const PROCESS_ANNOTATION = `${GROUP}/process`;

/**
 * Keeps a Job (and the ledger) from vanishing while a POST of one of its attempts may still arrive.
 * See "Life of one tick" in ARCHITECTURE.md.
 */
export const LAUNCH_FINALIZER = `${GROUP}/launch`;

export const TOKEN_ENV = "LOCKEDCRON_TOKEN";
export const RUN_ID_ENV = "LOCKEDCRON_RUN_ID";
export const SCHEDULED_TIME_ENV = "LOCKEDCRON_SCHEDULED_TIME";
export const LOCK_KEY_ENV = "LOCKEDCRON_LOCK_KEY";
export const SCHEDULE_NAMES_ENV = "LOCKEDCRON_SCHEDULE_NAMES";

/** Field selector of pods that are not terminal: what may still run. */
export const LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed";

/** 63 (a Job's pods need a label of its name) less the 11 characters of `-<minutes since epoch>`. */
export const MAX_NAME_LENGTH = 52;

/**
 * The name of a tick's Job: as native CronJob's, `<name>-<minutes since epoch>`; schedules finer than a minute
 * count unix seconds instead, since two of their ticks share a minute.
 */
export function jobName(name: string, tickMs: number, finerThanMinute: boolean): string {
  return `${name}-${Math.floor(tickMs / (finerThanMinute ? 1000 : 60_000))}`;
}

/** The ledger's Lease; 11 + 52 characters stay within 63. */
export function ledgerName(name: string): string {
  return `lockedcron-${name}`;
}

const LEDGER_PREFIX = ledgerName("");

/** The LockedCronJob that a ledger Lease belongs to; undefined when the Lease is not named like a ledger. */
export function nameOfLedger(leaseName: string): string | undefined {
  return leaseName.startsWith(LEDGER_PREFIX) ? leaseName.slice(LEDGER_PREFIX.length) : undefined;
}

/** Dots, where a ledger's name has a dash: a LockedCronJob named `mutex-db` must not get the fence of mutex `db`. */
const MUTEX_PREFIX = "lockedcron.mutex.";

/** The fence of a mutex: a Lease in its namespace. */
export function mutexLeaseName(name: string): string {
  return `${MUTEX_PREFIX}${name}`;
}

/** The mutex whose fence a Lease is; undefined when it is not named like one. */
export function nameOfMutexLease(leaseName: string): string | undefined {
  return leaseName.startsWith(MUTEX_PREFIX) ? leaseName.slice(MUTEX_PREFIX.length) : undefined;
}

/** What a work queue and a cache call an object: `namespace/name`. */
export type Key = string;

export function keyOf(namespace: string, name: string): Key {
  return `${namespace}/${name}`;
}

export function splitKey(key: Key): { namespace: string; name: string } {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
