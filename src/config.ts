import { readFileSync } from "node:fs";
import { hostname as systemHostname } from "node:os";
import { readArguments, readVariables } from "./config/arguments.ts";
import type { ConfigProblem, Given } from "./config/arguments.ts";
import { flagOf, type BindAddress, type Option, type Parsed } from "./config/option.ts";
import { FIELDS, OPTIONS, type LOCK_BACKENDS } from "./config/options.ts";
import type { Field, Values } from "./config/options.ts";
import { REDIS_REQUIRED, REDIS_UNUSED } from "./config/redis.ts";
import type { RedisNode } from "./config/redis.ts";
import { usage } from "./config/usage.ts";
import type { LogFormat, LogLevel } from "./telemetry/index.ts";

export type { ConfigProblem, RedisNode };
export { usage };

/** The settings of the operator, checked. docs/config.md says what each is for. */
export interface Config {
  lockBackend: (typeof LOCK_BACKENDS)[number];
  /** One node or at least three, all different; none when the backend is not Redis. */
  redis: readonly RedisNode[];
  /** The list that `redis` takes the place of. */
  redisPrevious?: readonly RedisNode[];
  /** PEM files for rediss://; the last two go together. */
  redisCaFile?: string;
  redisCertFile?: string;
  redisKeyFile?: string;
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

/** Throws when there is no such file. */
export type ReadFile = (path: string) => string;

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
  checkPasswordFile(values, given, from, problems);
  for (const field of READABLE) checkReadable(field, values, given, from, problems);
  checkKeyPair(values, given, problems);
  const replica = values.replica ?? defaultReplica(from, problems);

  const needsRedis = values.lockBackend === "redis";
  if (needsRedis && given.redis === undefined) {
    problems.push({ field: "--redis", message: REDIS_REQUIRED });
  } else if (!needsRedis && given.redis !== undefined) {
    problems.push({ field: given.redis.source, message: REDIS_UNUSED });
  }
  const { redis = [] } = values;
  if (problems.length > 0) {
    return { kind: "invalid", problems, text: describe(problems) };
  }
  const { redisUsername, redisPassword, redisPasswordFile, ...rest } = values;
  const shared = {
    ...(redisUsername !== undefined && { username: redisUsername }),
    ...(redisPassword !== undefined && { password: redisPassword }),
    ...(redisPasswordFile !== undefined && { passwordFile: redisPasswordFile }),
  };
  const config: Config = {
    ...withoutAbsent(rest),
    redis: redis.map((node) => withShared(node, shared)),
    ...(values.redisPrevious !== undefined && {
      redisPrevious: values.redisPrevious.map((node) => withShared(node, shared)),
    }),
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
  const files = new Set(nodes.flatMap((node) => node.passwordFile ?? []));
  return [
    ...nodes.flatMap((node) => node.password ?? []),
    ...[...files].flatMap((file) => {
      try {
        return passwordOf(readFile(file));
      } catch {
        // Gone since it was checked: the lock says so when it connects, and there is nothing to hide.
        return [];
      }
    }),
  ];
}

function passwordOf(content: string): string {
  return content.replace(/\r?\n$/, "");
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

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function checkPasswordFile(
  { redisPassword, redisPasswordFile: path }: Values,
  given: Partial<Record<Field, Given>>,
  { readFile }: Surroundings,
  problems: ConfigProblem[],
): void {
  if (path === undefined) return;
  const field = given.redisPasswordFile?.source ?? "--redis-password-file";
  if (redisPassword !== undefined) {
    const message = "does not go together with LOCKEDCRON_REDIS_PASSWORD; keep one of them";
    problems.push({ field, value: path, message });
    return;
  }
  try {
    if (passwordOf(readFile(path)) !== "") return;
    problems.push({ field, value: path, message: "is empty; write the password into the file" });
  } catch (error) {
    const message = `can not be read (${reasonOf(error)}); give the path of a readable file`;
    problems.push({ field, value: path, message });
  }
}

/** Files that are read later, with what each is to be. */
const READABLE = ["kubeconfig", "redisCaFile", "redisCertFile", "redisKeyFile"] as const;

function checkReadable(
  name: (typeof READABLE)[number],
  values: Values,
  given: Partial<Record<Field, Given>>,
  { readFile }: Surroundings,
  problems: ConfigProblem[],
): void {
  const path = values[name];
  if (path === undefined) return;
  try {
    readFile(path);
  } catch (error) {
    const what = name === "kubeconfig" ? "kubeconfig" : "PEM file";
    problems.push({
      field: given[name]?.source ?? flagOf(name),
      value: path,
      message: `can not be read (${reasonOf(error)}); give the path of a ${what}`,
    });
  }
}

function checkKeyPair(
  { redisCertFile, redisKeyFile }: Values,
  given: Partial<Record<Field, Given>>,
  problems: ConfigProblem[],
): void {
  if ((redisCertFile === undefined) === (redisKeyFile === undefined)) return;
  const [there, missing] =
    redisKeyFile === undefined
      ? (["redisCertFile", "redisKeyFile"] as const)
      : (["redisKeyFile", "redisCertFile"] as const);
  const message = `needs ${flagOf(missing)} beside it`;
  problems.push({ field: given[there]?.source ?? flagOf(there), message });
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

/** What an address says itself goes before what is said for all of them. */
function withShared(node: RedisNode, shared: Omit<RedisNode, "name" | "url">): RedisNode {
  // A password of its own takes the place of the shared file, too: lock accepts one or the other.
  const { passwordFile, ...rest } = shared;
  return {
    ...rest,
    ...node,
    ...(node.password === undefined && passwordFile !== undefined && { passwordFile }),
  };
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
