import { LOG_FORMATS, LOG_LEVELS } from "../telemetry/index.ts";
import { bindAddress, integer, namespaces, oneOf, text, withFallback } from "./option.ts";
import type { Defaulted, Option } from "./option.ts";
import { redisOption, redisPreviousOption } from "./redis.ts";

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const REPLICA = new RegExp(`(?=^.{1,63}$)${NAME.source}`);
export const LOCK_BACKENDS = ["redis", "kubernetes"] as const;
const PATH = { placeholder: "FILE", pattern: /./, problem: "write the path of a file" };

/**
 * The one table of settings: --help, docs/config.md, flags, variables and validation come from it.
 * The order is the order of --help.
 */
export const OPTIONS = {
  lockBackend: oneOf({
    values: LOCK_BACKENDS,
    fallback: "redis",
    help: "What elects a replica for a tick: a majority of Redis masters, or (kubernetes) the claim in the ledger alone, for trials and small clusters: see docs/redis.md for what that lacks.",
  }),
  redis: redisOption,
  redisPrevious: redisPreviousOption,
  redisConfig: text({
    ...PATH,
    help: "Instead of --redis: a YAML or JSON file that lists the nodes, each with credentials and TLS of its own, or as a master that Sentinel looks after. Read at the start.",
  }),
  redisUsername: text({
    placeholder: "NAME",
    pattern: /^\S+$/,
    problem: "write the name of the ACL user, without blanks",
    help: "ACL user for the nodes that name none.",
    defaultText: "the default user of Redis",
  }),
  redisPassword: {
    placeholder: "PASSWORD",
    help: "Password for the nodes that have none of their own. There is no flag for it: arguments are visible to every process.",
    variableOnly: true,
    secret: true,
    parse: (given) => ({ value: given }),
  } as Option<string>,
  redisPasswordFile: text({
    ...PATH,
    help: "File with the password for the nodes that have none of their own; a line break at its end does not count. Read anew for every connection, so it can be rotated.",
  }),
  redisCaFile: text({
    ...PATH,
    help: "Certificates (PEM) of the authorities that may sign those of rediss:// addresses. Read at the start.",
    defaultText: "those that Node.js trusts",
  }),
  redisCertFile: text({
    ...PATH,
    help: "Client certificate (PEM) for rediss:// addresses that ask for one. Read at the start.",
  }),
  redisKeyFile: text({
    ...PATH,
    help: "Private key (PEM) of --redis-cert-file.",
  }),
  kubeconfig: text({
    ...PATH,
    help: "Credentials for the API server.",
    defaultText: "the service account of the pod, else KUBECONFIG, else ~/.kube/config",
  }),
  context: text({
    placeholder: "NAME",
    pattern: /./,
    problem: "write the name of a context of the kubeconfig",
    help: "Context of the kubeconfig.",
    defaultText: "its current context",
  }),
  kubeTimeoutMs: integer({
    min: 500,
    max: 30_000,
    fallback: 10_000,
    help: "Milliseconds until a request to the API server counts as lost (watches excepted).",
  }),
  namespace: text({
    placeholder: "NAME",
    pattern: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
    problem: "write the name of a namespace, e.g. lockedcron-system",
    help: "Namespace of the operator itself, where the replicas keep their membership Leases.",
    defaultText: "that of the service account, else lockedcron-system",
  }),
  watchNamespaces: namespaces("Namespaces whose LockedCronJobs are run."),
  sharedMutexNamespaces: namespaces(
    "Namespaces whose mutexes (spec.lock.mutexes, as namespace/name) LockedCronJobs of every other namespace may use. With --watch-namespaces the operator needs its rights on Leases there, too.",
    "none: a mutex serves its own namespace",
  ),
  clusterId: text({
    placeholder: "ID",
    pattern: /^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/,
    problem: "write up to 63 letters, digits, dots and dashes, e.g. prod-eu-1",
    help: "Part of the lock keys, so that clusters may share their Redis nodes. The same for all replicas.",
    defaultText: "uid of the namespace kube-system",
  }),
  lockPrefix: withFallback("lockedcron", {
    placeholder: "TEXT",
    pattern: /^[\w.:-]{1,64}$/,
    problem: "write up to 64 letters, digits, dots, colons and dashes, e.g. lockedcron",
    help: "First part of every Redis key. The same for all replicas.",
  }),
  replica: text({
    placeholder: "ID",
    pattern: REPLICA,
    problem: "write up to 63 lower-case letters, digits, dots and dashes, e.g. replica-1",
    help: "Identity of this replica. Whatever starts the replicas must never run two at once under the same identity; pods get that from Kubernetes.",
    defaultText: "POD_UID, else POD_NAME (downward API), else the host name",
  }),
  membershipLeaseSeconds: integer({
    min: 3,
    max: 300,
    fallback: 15,
    help: "Seconds without a sign of life after which a replica counts as gone.",
  }),
  rankDelayMs: integer({
    min: 0,
    max: 10_000,
    fallback: 75,
    help: "Head start, in milliseconds, that a replica leaves to each replica ranked before it for a tick.",
  }),
  electionLeaseMs: integer({
    min: 500,
    max: 60_000,
    fallback: 3_000,
    help: "Lease, in milliseconds, of the lock that elects a replica for a tick, until the Job exists.",
  }),
  takeOverAfterMs: integer({
    min: 100,
    max: 600_000,
    fallback: 2_000,
    help: "Milliseconds after which a claim without a Job is carried on by another replica, even if its claimer seems alive.",
  }),
  workers: integer({
    min: 1,
    max: 1_024,
    fallback: 32,
    help: "LockedCronJobs that are worked on at the same time.",
  }),
  shutdownGraceSeconds: integer({
    min: 0,
    max: 3_600,
    fallback: 20,
    help: "Seconds that work in flight may take after SIGTERM. Keep it below terminationGracePeriodSeconds of the pod.",
  }),
  bindAddress: bindAddress({
    fallback: { port: 8080 },
    help: "Where /metrics, /livez and /readyz are served. Port 0 takes any free one.",
  }),
  logLevel: oneOf({ values: LOG_LEVELS, fallback: "info", help: "Least important level to log." }),
  logFormat: oneOf({
    values: LOG_FORMATS,
    fallback: "json",
    help: "One JSON object per line, or text for people.",
  }),
} satisfies Record<string, Option<unknown>>;

export type Field = keyof typeof OPTIONS;

/** What the table yields: the type of each setting, undefined where it has no default. */
export type Values = {
  -readonly [F in Field]: (typeof OPTIONS)[F] extends Defaulted<infer T>
    ? T
    : (typeof OPTIONS)[F] extends Option<infer T>
      ? T | undefined
      : never;
};

export const FIELDS = Object.keys(OPTIONS) as Field[];
