/** Kubernetes objects and ledger parts with everything set that does not matter to the test at hand. */
import {
  API_VERSION,
  ATTEMPT_ANNOTATION,
  KIND,
  LAUNCH_FINALIZER,
  LOCK_KEY_ANNOTATION,
  LOCK_VALUE_ANNOTATION,
  NAME_LABEL,
  RUN_ID_ANNOTATION,
  TICK_ANNOTATION,
  TOKEN_ANNOTATION,
} from "../../src/api/names.ts";
import type { Job, LockedCronJob, LockedCronJobSpec, ObjectMeta } from "../../src/api/types.ts";
import { scheduleText } from "../../src/domain/decide/index.ts";
import type { JobView } from "../../src/domain/job.ts";
import {
  newLedger,
  type Attempt,
  type Decision,
  type Ledger,
  type Run,
} from "../../src/domain/ledger.ts";

/** Noon of a Thursday. The tick of every builder here; LockedCronJobs were made half an hour before. */
export const NOON = Date.UTC(2026, 0, 1, 12);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

export function at(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z");
}

/** `team/report`, each full hour. */
export function aLockedCronJob(
  spec: Partial<LockedCronJobSpec> = {},
  metadata: Partial<ObjectMeta> = {},
): LockedCronJob {
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: {
      name: "report",
      namespace: "team",
      uid: "owner-1",
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: at(NOON - 30 * MINUTE),
      ...metadata,
    },
    spec: {
      schedule: "0 * * * *",
      concurrencyPolicy: "Forbid",
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
      jobTemplate: {
        spec: { template: { spec: { containers: [{ name: "main" }], restartPolicy: "Never" } } },
      },
      lock: { leaseSeconds: 30 },
      ...spec,
    },
  };
}

export function anAttempt(fields: Partial<Attempt> = {}): Attempt {
  return { n: 1, by: "me/1", settled: false, ...fields };
}

/** Claimed at noon by `me/1`, its POST not settled. */
export function aRun(fields: Partial<Run> = {}): Run {
  const tick = fields.tick ?? NOON;
  return {
    tick,
    runId: `report-${tick / MINUTE}.owner-1`,
    jobName: `report-${tick / MINUTE}`,
    token: 1,
    lockKey: "lockedcron:c1:team/report",
    lockValue: "value-1",
    attempts: [anAttempt()],
    why: "Due",
    ...fields,
  };
}

/** Its Job is known to exist and no other POST of it is pending. */
export function aStartedRun(fields: Partial<Run> = {}): Run {
  return aRun({ jobUID: "job-1", attempts: [anAttempt({ settled: true })], ...fields });
}

export function aLedger(fields: Partial<Ledger> = {}): Ledger {
  return newLedger({
    owner: "owner-1",
    schedule: scheduleText(aLockedCronJob()),
    anchor: NOON - 30 * MINUTE,
    ...fields,
  });
}

export function aDecision(fields: Partial<Decision> = {}): Decision {
  return {
    at: NOON,
    tick: NOON,
    decision: "Launched",
    reason: "Due",
    message: "Job created",
    replica: "me",
    ...fields,
  };
}

/** The running Job of `aRun()`, as a cache has it; its launch finalizer is still on. */
export function aJobView(fields: Partial<JobView> = {}): JobView {
  const run = aRun();
  return {
    namespace: "team",
    name: run.jobName,
    uid: "job-1",
    ownerUid: "owner-1",
    runId: run.runId,
    tick: run.tick,
    attempt: 1,
    token: 1,
    lockKey: run.lockKey,
    lockValue: run.lockValue,
    labelled: true,
    hasLaunchFinalizer: true,
    deleting: false,
    outcome: undefined,
    finishedAt: undefined,
    createdAt: NOON,
    resourceVersion: "1",
    ...fields,
  };
}

/** The same Job as it is on the wire. */
export function aJob(metadata: Partial<ObjectMeta> = {}, status: Job["status"] = {}): Job {
  const run = aRun();
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: run.jobName,
      namespace: "team",
      uid: "job-1",
      resourceVersion: "1",
      creationTimestamp: at(NOON),
      labels: { [NAME_LABEL]: "report" },
      annotations: {
        [RUN_ID_ANNOTATION]: run.runId,
        [TICK_ANNOTATION]: at(NOON),
        [TOKEN_ANNOTATION]: "1",
        [ATTEMPT_ANNOTATION]: "1",
        [LOCK_KEY_ANNOTATION]: run.lockKey,
        [LOCK_VALUE_ANNOTATION]: run.lockValue,
      },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: KIND, name: "report", uid: "owner-1", controller: true },
      ],
      finalizers: [LAUNCH_FINALIZER],
      ...metadata,
    },
    status,
  };
}
