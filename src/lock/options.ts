import type { ConnectionOptions } from "node:tls";
import { LockConfigError } from "./errors.ts";
import { checkNodeCount } from "./quorum.ts";
import type { LockWarning, NodeOptions, QuorumLockOptions } from "./types.ts";

/** One node, checked and taken apart. */
export interface NodeConfig {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: ConnectionOptions;
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

const FORM = "redis[s]://[user[:password]@]host[:port][/db]";

/** The URL as it may be shown: whatever could be a password is hidden, also when it cannot be parsed. */
export function redactUrl(url: string): string {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?([\s\S]*)$/i.exec(url) ?? [];
  const address = rest.slice(rest.lastIndexOf("@") + 1).replace(/[?#][\s\S]*$/, "?***");
  const shown = rest.includes("@")
    ? `***@${address}`
    : address.replace(/:(?!\d+(\/|$)).+$/, ":***");
  return scheme + shown;
}

function decode(part: string, field: string, what: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new LockConfigError(
      "BadUrl",
      field,
      `the ${what} in the URL has a stray "%"; write it percent-encoded ("%25") or give it as ${what}`,
    );
  }
}

function parseNode(input: string | NodeOptions, field: string): NodeConfig {
  const node: NodeOptions = typeof input === "string" ? { url: input } : input;
  const refuse = (why: string) =>
    new LockConfigError("BadUrl", field, `"${redactUrl(node.url)}" ${why}; give ${FORM}`);
  if (typeof node.url !== "string" || !URL.canParse(node.url)) throw refuse("is not a URL");
  const url = new URL(node.url);
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
    throw refuse(`has the scheme "${url.protocol.slice(0, -1)}", not redis or rediss`);
  }
  if (url.hostname === "") throw refuse("has no host");
  if (url.search !== "" || url.hash !== "") throw refuse("has a query or a fragment");
  if (!/^(\/\d*)?$/.test(url.pathname)) throw refuse("has a path that is not a database number");
  if (url.port === "0") throw refuse("has port 0");
  if (node.tls !== undefined && url.protocol !== "rediss:") {
    throw new LockConfigError("BadOption", `${field}.tls`, "needs a rediss:// URL");
  }

  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? 6379 : Number(url.port);
  const db = Number(url.pathname.slice(1) || "0");
  const username = node.username ?? decode(url.username, field, "username");
  const password = node.password ?? decode(url.password, field, "password");
  return {
    name: node.name ?? `${host}:${port}${db === 0 ? "" : `/${db}`}`,
    host,
    port,
    db,
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(url.protocol === "rediss:" && { tls: { servername: host, ...node.tls } }),
  };
}

/** Checks and parses the node list. @throws LockConfigError for the first entry that is wrong */
export function parseNodes(inputs: QuorumLockOptions["nodes"]): NodeConfig[] {
  if (!Array.isArray(inputs)) {
    throw new LockConfigError("BadOption", "nodes", "is not a list of Redis URLs");
  }
  checkNodeCount(inputs.length);
  const configs = inputs.map((input, i) => parseNode(input, `nodes[${i}]`));
  const seen = new Map<string, number>();
  for (const [i, config] of configs.entries()) {
    // The database number does not make it another Redis: both votes would come from one process.
    for (const id of [`${config.host.toLowerCase()}:${config.port}`, `name ${config.name}`]) {
      const first = seen.get(id);
      if (first !== undefined) {
        throw new LockConfigError(
          "DuplicateNode",
          `nodes[${i}]`,
          `"${config.name}" is the same as nodes[${first}]: one Redis has one vote; list each once`,
        );
      }
      seen.set(id, i);
    }
  }
  return configs;
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

export function checkKey(key: string): void {
  if (typeof key !== "string" || key === "") {
    throw new LockConfigError("BadKey", "key", "is empty");
  }
}
