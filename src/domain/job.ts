import {
  API_VERSION,
  ATTEMPT_ANNOTATION,
  INSTANTIATE_ANNOTATION,
  KIND,
  LAUNCH_FINALIZER,
  LOCK_KEY_ANNOTATION,
  LOCK_KEY_ENV,
  LOCK_TERMS_ANNOTATION,
  LOCK_VALUE_ANNOTATION,
  MANUAL_ANNOTATION,
  NAME_LABEL,
  RUN_ID_ANNOTATION,
  RUN_ID_ENV,
  SCHEDULED_TIMESTAMP_ANNOTATION,
  SCHEDULED_TIME_ENV,
  SCHEDULE_NAMES_ANNOTATION,
  SCHEDULE_NAMES_ENV,
  TICK_ANNOTATION,
  TOKEN_ANNOTATION,
  TOKEN_ENV,
} from "../api/names.ts";
import type { Container, EnvVar, Job, LockedCronJob, PodTemplate } from "../api/types.ts";
import { parseTerms } from "./ledger-json.ts";
import type { Run } from "./ledger.ts";
import type { LockTerms } from "./lock-terms.ts";
import type { Manual } from "./manual.ts";
import type { Schedule } from "./schedule/index.ts";

/** What the operator needs to know of a Job; small, so that a cache can hold many. */
export interface JobView {
  namespace: string;
  name: string;
  uid: string;
  /** uid of the controlling owner. */
  ownerUid: string | undefined;
  runId: string | undefined;
  /** Milliseconds. */
  tick: number | undefined;
  /** Somebody asked for it; its tick is none of the schedule's. */
  manual?: Manual | undefined;
  attempt: number | undefined;
  token: number | undefined;
  lockKey: string | undefined;
  lockValue: string | undefined;
  /** It bears the label that our watches select by. */
  labelled: boolean;
  /** spec.lock as its run has it; absent at the defaults. */
  lock?: LockTerms;
  hasLaunchFinalizer: boolean;
  deleting: boolean;
  outcome: "Complete" | "Failed" | undefined;
  /** Why it failed, in the Job controller's word. */
  failure?: string;
  /** Milliseconds; undefined while the Job runs. */
  finishedAt: number | undefined;
  createdAt: number;
  resourceVersion: string;
}

export function viewOf(job: Job): JobView {
  const { metadata, status } = job;
  const annotations = metadata.annotations ?? {};
  const terminal = status?.conditions?.find(
    (c) => (c.type === "Complete" || c.type === "Failed") && c.status === "True",
  );
  const lock = parseTerms(annotations[LOCK_TERMS_ANNOTATION]);
  const finished = status?.completionTime ?? terminal?.lastTransitionTime;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    ownerUid: metadata.ownerReferences?.find((o) => o.controller === true)?.uid,
    runId: annotations[RUN_ID_ANNOTATION],
    tick: time(annotations[TICK_ANNOTATION]),
    ...manualOf(annotations[MANUAL_ANNOTATION]),
    attempt: integer(annotations[ATTEMPT_ANNOTATION]),
    token: integer(annotations[TOKEN_ANNOTATION]),
    lockKey: annotations[LOCK_KEY_ANNOTATION],
    lockValue: annotations[LOCK_VALUE_ANNOTATION],
    labelled: metadata.labels?.[NAME_LABEL] !== undefined,
    ...(lock === undefined ? {} : { lock }),
    hasLaunchFinalizer: metadata.finalizers?.includes(LAUNCH_FINALIZER) ?? false,
    deleting: metadata.deletionTimestamp !== undefined,
    outcome: terminal?.type as "Complete" | "Failed" | undefined,
    ...(terminal?.type === "Failed" && terminal.reason !== undefined
      ? { failure: terminal.reason }
      : {}),
    finishedAt: terminal === undefined ? undefined : (time(finished) ?? 0),
    createdAt: time(metadata.creationTimestamp) ?? 0,
    resourceVersion: metadata.resourceVersion,
  };
}

/** The tick of a run in the terms of its schedule. */
export interface Occasion {
  /** RFC 3339, in the schedule's zone. */
  timestamp: string;
  /** What the spec calls the schedules that it belongs to. */
  names: readonly string[];
}

export function occasionOf(
  { tick, manual }: Run,
  schedule: Pick<Schedule, "timestamp" | "namesAt">,
): Occasion {
  // A trigger's tick is when it was claimed: what it meets there by chance is not why it runs.
  const names = manual?.kind === "trigger" ? [] : schedule.namesAt(tick);
  return { timestamp: schedule.timestamp(tick), names };
}

/**
 * The Job of one attempt: native CronJob's Job plus the launch finalizer, the label and annotations that tie it to its
 * run, and the run's env in every container and annotations on the pods (a name that the user has set is left alone).
 */
export function buildJob(
  owner: LockedCronJob,
  run: Run,
  attempt: number,
  { timestamp, names }: Occasion,
): Omit<Job, "metadata"> & { metadata: object } {
  const { name, namespace, uid } = owner.metadata;
  const { metadata, spec } = owner.spec.jobTemplate;
  const { manual } = run;
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: run.jobName,
      namespace,
      labels: { ...jobLabels(metadata?.labels, spec.template, run.jobName), [NAME_LABEL]: name },
      annotations: {
        ...metadata?.annotations,
        ...(manual?.kind === "trigger" ? {} : { [SCHEDULED_TIMESTAMP_ANNOTATION]: timestamp }),
        ...(manual === undefined ? {} : manualAnnotations(manual)),
        [TICK_ANNOTATION]: new Date(run.tick).toISOString(),
        [RUN_ID_ANNOTATION]: run.runId,
        [TOKEN_ANNOTATION]: String(run.token),
        [ATTEMPT_ANNOTATION]: String(attempt),
        [LOCK_KEY_ANNOTATION]: run.lockKey,
        ...namesAnnotation(names),
        [LOCK_VALUE_ANNOTATION]: run.lockValue,
        ...(run.lock === undefined ? {} : { [LOCK_TERMS_ANNOTATION]: JSON.stringify(run.lock) }),
      },
      ownerReferences: [
        {
          apiVersion: API_VERSION,
          kind: KIND,
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      finalizers: [LAUNCH_FINALIZER],
    },
    spec: { ...spec, ...deadlineOf(spec, run), template: withRun(spec.template, name, run, names) },
  };
}

/**
 * A Job without labels gets its pods' from the API server (batch/v1 defaulting). Ours is never without, so it gets them here;
 * but for the Job's uid, which nobody knows yet.
 */
function jobLabels(
  own: Record<string, string> = {},
  template: PodTemplate,
  jobName: string,
): Record<string, string> {
  if (Object.keys(own).length > 0) return own;
  return {
    ...template.metadata?.labels,
    "batch.kubernetes.io/job-name": jobName,
    "job-name": jobName,
  };
}

/** lock.atMostSeconds as the Job's own deadline: Kubernetes ends the run, also when no operator is left. */
function deadlineOf(spec: Record<string, unknown>, { lock }: Run): object {
  const { atMostSeconds } = lock ?? {};
  if (atMostSeconds === undefined) return {};
  const own = spec.activeDeadlineSeconds;
  const seconds = typeof own === "number" ? Math.min(own, atMostSeconds) : atMostSeconds;
  return { activeDeadlineSeconds: seconds };
}

function runEnv(run: Run, names: readonly string[]): EnvVar[] {
  return [
    { name: RUN_ID_ENV, value: run.runId },
    { name: TOKEN_ENV, value: String(run.token) },
    { name: SCHEDULED_TIME_ENV, value: new Date(run.tick).toISOString() },
    { name: LOCK_KEY_ENV, value: run.lockKey },
    ...(names.length === 0 ? [] : [{ name: SCHEDULE_NAMES_ENV, value: names.join() }]),
  ];
}

/** The same on the pods, for those who read them by the downward API or from outside. */
function podAnnotations(run: Run, names: readonly string[]): Record<string, string> {
  return {
    [RUN_ID_ANNOTATION]: run.runId,
    [TOKEN_ANNOTATION]: String(run.token),
    [TICK_ANNOTATION]: new Date(run.tick).toISOString(),
    [LOCK_KEY_ANNOTATION]: run.lockKey,
    ...namesAnnotation(names),
  };
}

function namesAnnotation(names: readonly string[]): Record<string, string> {
  return names.length === 0 ? {} : { [SCHEDULE_NAMES_ANNOTATION]: names.join() };
}

function manualAnnotations({ id, kind }: Manual): Record<string, string> {
  return { [INSTANTIATE_ANNOTATION]: "manual", [MANUAL_ANNOTATION]: `${kind}/${id}` };
}

function manualOf(text = ""): { manual?: Manual } {
  const slash = text.indexOf("/");
  const [kind, id] = [text.slice(0, slash), text.slice(slash + 1)];
  return kind === "trigger" || kind === "backfill" ? { manual: { id, kind } } : {};
}

function withRun(
  template: PodTemplate,
  name: string,
  run: Run,
  names: readonly string[],
): PodTemplate {
  const { spec, metadata } = template;
  const env = runEnv(run, names);
  const give = (c: Container): Container => ({ ...c, env: withDefaults(c.env ?? [], env) });
  return {
    ...template,
    metadata: {
      ...metadata,
      labels: { ...metadata?.labels, [NAME_LABEL]: name },
      annotations: { ...podAnnotations(run, names), ...metadata?.annotations },
    },
    spec: {
      ...spec,
      containers: spec.containers.map(give),
      ...(spec.initContainers === undefined
        ? {}
        : { initContainers: spec.initContainers.map(give) }),
    },
  };
}

/** Ours come first so that the user's own variables may refer to them by $(NAME). */
function withDefaults(own: readonly EnvVar[], added: readonly EnvVar[]): EnvVar[] {
  return [...added.filter((e) => !own.some((o) => o.name === e.name)), ...own];
}

function integer(text: string | undefined): number | undefined {
  const value = Number(text);
  return text !== undefined && Number.isSafeInteger(value) ? value : undefined;
}

function time(text: string | undefined): number | undefined {
  const value = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(value) ? undefined : value;
}
