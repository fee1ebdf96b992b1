import { readFileSync } from "node:fs";
import { hostname as systemHostname } from "node:os";
import { readArguments, readVariables } from "./config/arguments.ts";
import type { ConfigProblem, Given } from "./config/arguments.ts";
import { checkFiles, passwordOf, type ReadFile } from "./config/files.ts";
import type { BindAddress, Option, Parsed } from "./config/option.ts";
import { FIELDS, OPTIONS, type LOCK_BACKENDS } from "./config/options.ts";
import type { Field, Values } from "./config/options.ts";
import { secretsOf, type RedisNode, type TlsFiles } from "./config/redis.ts";
import { readLists } from "./config/redis-lists.ts";
import { usage } from "./config/usage.ts";
import type { LogFormat, LogLevel } from "./telemetry/index.ts";

export type { ConfigProblem, ReadFile, RedisNode, TlsFiles };
export { usage };

/** The settings of the operator, checked. docs/config.md says what each is for. */
export interface Config {
  lockBackend: (typeof LOCK_BACKENDS)[number];
  /** One node or at least three, all different; none when the backend is not Redis. */
  redis: readonly RedisNode[];
  /** The list that `redis` takes the place of. */
  redisPrevious?: readonly RedisNode[];
  kubeconfig?: string;
  context?: string;
  kubeTimeoutMs: number;
  /** The operator's own namespace. */
  namespace: string;
  /** Empty: all. */
  watchNamespaces: readonly string[];
  sharedMutexNamespaces: readonly string[];
  /** A DNS-1123 subdomain of at most 63 characters. */
  replica: string;
  /** Of the pod that this replica is, if its name is that pod's uid. */
  podName?: string;
  bindAddress: BindAddress;
  logLevel: LogLevel;
  logFormat: LogFormat;
  workers: number;
  rankDelayMs: number;
  electionLeaseMs: number;
  takeOverAfterMs: number;
  membershipLeaseSeconds: number;
  shutdownGraceSeconds: number;
  /** Absent: the uid of the namespace kube-system. */
  clusterId?: string;
  lockPrefix: string;
}

export type LoadedConfig =
  | { kind: "config"; config: Config; warnings: string[] }
  | { kind: "help"; text: string }
  | { kind: "version" }
  | { kind: "invalid"; problems: ConfigProblem[]; text: string };

const readText: ReadFile = (path) => readFileSync(path, "utf8");

export interface ConfigInput {
  /** Without the program: `process.argv.slice(2)`. */
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  readFile?: ReadFile;
  hostname?: () => string;
}

const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const DEFAULT_NAMESPACE = "lockedcron-system";

/** The surroundings of the process as settings fall back on them. */
interface Surroundings {
  env: ConfigInput["env"];
  readFile: ReadFile;
  hostname: () => string;
}

/**
 * Reads flags, variables and files. Never throws: everything that is wrong comes back at once, each
 * with the setting, its value (unless secret) and what to write instead.
 */
export function loadConfig(input: ConfigInput): LoadedConfig {
  const { argv, env, hostname = systemHostname } = input;
  const { readFile = readText } = input;
  const flags = readArguments(argv);
  if (flags.help) return { kind: "help", text: usage() };
  if (flags.version) return { kind: "version" };

  const variables = readVariables(env);
  const given = { ...variables.given, ...flags.given };
  const problems = [...flags.problems, ...variables.problems];
  const from = { env, readFile, hostname };
  const values = parseAll(given, problems);
  const checked = { values, given, readFile, problems };
  checkFiles(checked);
  const replica = values.replica ?? defaultReplica(from, problems);
  const lists = readLists(checked);

  if (problems.length > 0) {
    return { kind: "invalid", problems, text: describe(problems) };
  }
  const config: Config = {
    ...withoutAbsent(withoutRedis(values)),
    ...lists,
    namespace: values.namespace ?? defaultNamespace(from),
    replica,
    // Others take another uid under this name for proof that the replica is dead; so only if that is what it is called.
    ...(env.POD_NAME !== undefined &&
      env.POD_NAME !== "" &&
      env.POD_UID === replica && { podName: env.POD_NAME }),
  };
  return { kind: "config", config, warnings: variables.warnings };
}

/** Every secret of a configuration as it is now, for `createRedactor`. */
export function configSecrets(config: Config, readFile: ReadFile = readText): string[] {
  const nodes = [...config.redis, ...(config.redisPrevious ?? [])];
  const { files, texts } = secretsOf(nodes);
  return [
    ...texts,
    ...[...new Set(files)].flatMap((file) => {
      try {
        return passwordOf(readFile(file));
      } catch {
        // Gone since it was checked: the lock says so when it connects, and there is nothing to hide.
        return [];
      }
    }),
  ];
}

/** What the lists of nodes are made of. */
const REDIS_FIELDS = [
  ...(["redis", "redisPrevious", "redisConfig", "redisUsername", "redisPassword"] as const),
  ...(["redisPasswordFile", "redisCaFile", "redisCertFile", "redisKeyFile"] as const),
];

function withoutRedis(values: Values): Omit<Values, (typeof REDIS_FIELDS)[number]> {
  const rest = { ...values };
  for (const field of REDIS_FIELDS) Reflect.deleteProperty(rest, field);
  return rest;
}

function parseAll(given: Partial<Record<Field, Given>>, problems: ConfigProblem[]) {
  const values: Partial<Record<Field, unknown>> = {};
  for (const field of FIELDS) {
    const option: Option<unknown> = OPTIONS[field];
    const entry = given[field];
    values[field] = option.fallback;
    if (entry === undefined) continue;
    const parsed: Parsed<unknown> = option.parse(entry.text);
    if ("value" in parsed) {
      values[field] = parsed.value;
    } else {
      const shown = option.secret === true ? {} : { value: entry.text };
      problems.push({ field: entry.source, ...shown, message: parsed.problem });
    }
  }
  return values as Values;
}

function defaultReplica({ env, hostname }: Surroundings, problems: ConfigProblem[]): string {
  const sources: [string, string | undefined][] = [
    ["POD_UID", env.POD_UID],
    ["POD_NAME", env.POD_NAME],
    ["the host name", hostname().toLowerCase()],
  ];
  const [source, name = ""] = sources.find(([, value]) => value !== undefined && value !== "") ?? [
    "the host name",
  ];
  const parsed = OPTIONS.replica.parse(name);
  if ("problem" in parsed) {
    problems.push({
      field: source,
      value: name,
      message: `can not serve as identity of this replica; set --replica: ${parsed.problem}`,
    });
  }
  return name;
}

function defaultNamespace({ readFile }: Surroundings): string {
  try {
    return readFile(NAMESPACE_FILE).trim() || DEFAULT_NAMESPACE;
  } catch {
    // No pod, or one without a service account.
    return DEFAULT_NAMESPACE;
  }
}

type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

function withoutAbsent<T extends object>(values: T): Present<T> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Present<T>;
}

function describe(problems: readonly ConfigProblem[]): string {
  const lines = problems.map(({ field, value, message }) => {
    const shown = value === undefined ? "" : ` ${JSON.stringify(value)}`;
    return `  ${field}${shown}: ${message}`;
  });
  const count =
    problems.length === 1 ? "1 setting is wrong" : `${problems.length} settings are wrong`;
  return [`${count}:`, ...lines, "Run with --help for all settings.", ""].join("\n");
}
