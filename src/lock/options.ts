import { LockConfigError } from "./errors.ts";
import type { Access } from "./node/dial.ts";
import type { SentinelTarget } from "./node/sentinel.ts";
import { listIdOf, type MembershipOptions } from "./membership.ts";
import { checkNodeCount } from "./quorum.ts";
import type { LockWarning, NodeOptions, QuorumLockOptions, SentinelNodeOptions } from "./types.ts";
import { parseUrl, type UrlParts } from "./urls.ts";

/** One node, checked and taken apart. */
export interface NodeConfig {
  readonly name: string;
  /** Where it is; of no meaning when `sentinel` is there. */
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly access: Access;
  readonly sentinel?: SentinelTarget;
  /** Votes count only when so many replicas have them. */
  readonly waitReplicas: number;
}

export interface Timing {
  readonly nodeTimeoutMs: number;
  readonly reconnectMaxMs: number;
  readonly heartbeatMs: number;
  readonly factsMs: number;
}

/** Below this a lease is eaten by drift, round trips and timer resolution. */
export const MIN_LEASE_MS = 100;
/** setTimeout overflows above 2^31 - 1 and then fires at once. */
export const MAX_LEASE_MS = 2 ** 31 - 1;

function accessOf(
  url: Pick<UrlParts, "tls" | "username" | "password">,
  node: Omit<NodeOptions, "url" | "name">,
  field: string,
  fileField = `${field}.passwordFile`,
): Access {
  if (node.tls !== undefined && !url.tls) {
    throw new LockConfigError("BadOption", `${field}.tls`, "needs a rediss:// URL");
  }
  const username = node.username ?? url.username;
  const password = node.password ?? url.password;
  if (node.passwordFile !== undefined && password !== "") {
    throw new LockConfigError(
      "BadOption",
      fileField,
      "is given beside a password; give one of them",
    );
  }
  return {
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(node.passwordFile !== undefined && { passwordFile: node.passwordFile }),
    ...(url.tls && { tls: node.tls ?? {} }),
  };
}

function parseStandalone(node: NodeOptions, field: string): NodeConfig {
  const url = parseUrl(node.url, field, 6379);
  const { host, port, db } = url;
  return {
    name: node.name ?? `${host}:${port}${db === 0 ? "" : `/${db}`}`,
    host,
    port,
    db,
    access: accessOf(url, node, field),
    waitReplicas: 0,
  };
}

function sentinelAccess(first: UrlParts, node: SentinelNodeOptions, field: string): Access {
  const { sentinelUsername, sentinelPassword, sentinelPasswordFile, sentinelTls } = node;
  const login = {
    ...(sentinelUsername !== undefined && { username: sentinelUsername }),
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(sentinelPasswordFile !== undefined && { passwordFile: sentinelPasswordFile }),
    ...(sentinelTls !== undefined && { tls: sentinelTls }),
  };
  return accessOf(first, login, field, `${field}.sentinelPasswordFile`);
}

function parseSentinel(node: SentinelNodeOptions, field: string): NodeConfig {
  if (typeof node.masterName !== "string" || node.masterName === "") {
    throw new LockConfigError("BadOption", `${field}.masterName`, "is empty");
  }
  const urls = node.sentinels.map((url, i) => parseUrl(url, `${field}.sentinels[${i}]`, 26379));
  const [first] = urls;
  if (first === undefined) {
    throw new LockConfigError("BadOption", `${field}.sentinels`, "is empty; give all sentinels");
  }
  const mixed = urls.findIndex((url) => url.tls !== first.tls);
  if (mixed > 0) {
    throw new LockConfigError(
      "BadUrl",
      `${field}.sentinels[${mixed}]`,
      "differs from the first in redis:// or rediss://; give all of them the same",
    );
  }
  const plain = { username: "", password: "", tls: node.tls !== undefined };
  const waitReplicas = checkMs(`${field}.waitReplicas`, node.waitReplicas ?? 0, 0);
  return {
    name: node.name ?? node.masterName,
    // Two groups of sentinels may call theirs the same.
    host: node.name ?? node.masterName,
    port: 0,
    db: node.db ?? 0,
    access: accessOf(plain, node, field),
    sentinel: {
      sentinels: urls,
      masterName: node.masterName,
      access: sentinelAccess(first, node, field),
      ...(node.natMap !== undefined && { natMap: node.natMap }),
    },
    waitReplicas,
  };
}

function parseNode(input: QuorumLockOptions["nodes"][number], field: string): NodeConfig {
  if (typeof input === "string") return parseStandalone({ url: input }, field);
  return "sentinels" in input ? parseSentinel(input, field) : parseStandalone(input, field);
}

/** Checks and parses the node list. @throws LockConfigError for the first entry that is wrong */
export function parseNodes(inputs: QuorumLockOptions["nodes"], list = "nodes"): NodeConfig[] {
  if (!Array.isArray(inputs)) {
    throw new LockConfigError("BadOption", list, "is not a list of Redis URLs");
  }
  checkNodeCount(inputs.length);
  const configs = inputs.map((input, i) => parseNode(input, `${list}[${i}]`));
  const seen = new Map<string, number>();
  for (const [i, config] of configs.entries()) {
    // The database number does not make it another Redis: both votes would come from one process.
    for (const id of [`name ${config.name}`, ...placesOf(config)]) {
      const first = seen.get(id);
      if (first !== undefined && first !== i) {
        throw new LockConfigError(
          "DuplicateNode",
          `${list}[${i}]`,
          `"${config.name}" is the same as ${list}[${first}]: one Redis has one vote; list each once`,
        );
      }
      seen.set(id, i);
    }
  }
  return configs;
}

/** Two nodes with one of these in common are one. */
function placesOf({ host, port, sentinel }: NodeConfig): string[] {
  if (sentinel === undefined) return [`${host.toLowerCase()}:${port}`];
  const { sentinels, masterName } = sentinel;
  return sentinels.map((one) => `${one.host.toLowerCase()}:${one.port} ${masterName}`);
}

/** Where a node is: the same for everybody who lists it. Sentinels come and go, so of theirs the name counts. */
function addressOf({ host, port, db, sentinel }: NodeConfig): string {
  const place = sentinel === undefined ? `${host.toLowerCase()}:${port}` : `sentinel:${host}`;
  return `${place}/${db}`;
}

/**
 * The list of nodes and the one before it.
 * @throws LockConfigError when the one before is wrong, or the longest lease is not given that has to be waited for
 */
export function parseLists(
  options: QuorumLockOptions,
  configs: readonly NodeConfig[],
): Pick<MembershipOptions, "list" | "nodes" | "previous"> & {
  readonly retiring: readonly NodeConfig[];
} {
  const list = options.listId ?? listIdOf(configs.map(addressOf));
  if (!/^[\w.:-]{1,64}$/.test(list)) {
    throw new LockConfigError(
      "BadOption",
      "listId",
      `${JSON.stringify(list)} is not 1 to 64 letters, digits or any of "._:-"`,
    );
  }
  const nodes = configs.map(({ name }) => name);
  if (options.previousNodes === undefined) return { list, nodes, retiring: [] };

  const before = parseNodes(options.previousNodes, "previousNodes");
  if (options.maxLeaseMs === undefined) {
    throw new LockConfigError(
      "BadOption",
      "maxLeaseMs",
      "is needed with previousNodes: what is held by those nodes must run out first",
    );
  }
  const previous = options.previousListId ?? listIdOf(before.map(addressOf));
  // Nothing has changed but the order.
  if (previous === list) return { list, nodes, retiring: [] };
  const known = new Map(configs.map((config) => [addressOf(config), config.name]));
  const named = before.map((config) => ({
    ...config,
    name: known.get(addressOf(config)) ?? `previous ${config.name}`,
  }));
  return {
    list,
    nodes,
    previous: { list: previous, nodes: named.map(({ name }) => name) },
    retiring: named.filter(({ name }) => !nodes.includes(name)),
  };
}

export function nodeCountWarnings(count: number): LockWarning[] {
  if (count === 1) {
    return [
      {
        code: "NoFaultTolerance",
        message: "one Redis node: no fault tolerance, its loss or restart stops or breaks the lock",
      },
    ];
  }
  if (count % 2 === 0) {
    return [
      {
        code: "EvenNodeCount",
        message: `${count} Redis nodes tolerate no more failures than ${count - 1}`,
      },
    ];
  }
  return [];
}

function checkMs(field: string, value: number, min: number): number {
  if (Number.isFinite(value) && value >= min && value <= MAX_LEASE_MS) return value;
  throw new LockConfigError(
    "BadOption",
    field,
    `${String(value)} is not a number of milliseconds from ${min} to ${MAX_LEASE_MS}`,
  );
}

export function parseTiming(options: QuorumLockOptions): Timing {
  return {
    nodeTimeoutMs: checkMs("nodeTimeoutMs", options.nodeTimeoutMs ?? 500, 10),
    reconnectMaxMs: checkMs("reconnectMaxMs", options.reconnectMaxMs ?? 500, 10),
    heartbeatMs: checkMs("heartbeatMs", options.heartbeatMs ?? 1_000, 50),
    factsMs: checkMs("factsMs", options.factsMs ?? 10_000, 50),
  };
}

/** 0 when it was not given. */
export function parseMaxLease(options: QuorumLockOptions): number {
  return options.maxLeaseMs === undefined
    ? 0
    : checkMs("maxLeaseMs", options.maxLeaseMs, MIN_LEASE_MS);
}

/** @throws LockConfigError when an argument could never make a lock; before anything is sent */
export function checkEntry(key: string, value: string, leaseMs: number): void {
  checkKey(key);
  if (typeof value !== "string" || value === "") {
    throw new LockConfigError("BadValue", "value", "is empty; give a value unique to the attempt");
  }
  if (!Number.isInteger(leaseMs) || leaseMs < MIN_LEASE_MS || leaseMs > MAX_LEASE_MS) {
    throw new LockConfigError(
      "BadLease",
      "leaseMs",
      `${String(leaseMs)} is not a whole number from ${MIN_LEASE_MS} to ${MAX_LEASE_MS}`,
    );
  }
}

/** A time to wait; 0 is allowed. */
export function checkWait(field: string, ms: number): number {
  return checkMs(field, ms, 0);
}

/** How long a lock may be held; not 0. */
export function checkHold(ms: number): number {
  return checkMs("maxHoldMs", ms, 1);
}

export function checkKey(key: string): void {
  if (typeof key !== "string" || key === "") {
    throw new LockConfigError("BadKey", "key", "is empty");
  }
}
