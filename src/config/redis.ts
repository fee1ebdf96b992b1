import { isIPv6 } from "node:net";
import { isHostName, splitList } from "./option.ts";
import type { Option, Parsed } from "./option.ts";

/** How to be let in. */
export interface Login {
  username?: string;
  password?: string;
  /** Instead of a password; read anew for every connection, so that it can be rotated. */
  passwordFile?: string;
}

/** PEM files, read at the start; the last two go together. */
export interface TlsFiles {
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  /** Name in the certificate, where it is not the host of the address. */
  serverName?: string;
}

/** One independent Redis master at an address. */
export interface AddressNode extends Login {
  /** `0/redis-0:6379`: position, host and port. Without credentials, fit for logs and labels. */
  name: string;
  /** `redis[s]://host:port[/db]` without credentials. */
  url: string;
  tls?: TlsFiles;
}

/** One independent Redis master that Sentinel looks after. */
export interface SentinelNode extends Login {
  /** The same for all replicas; that of the master, unless given. */
  name: string;
  masterName: string;
  /** `redis[s]://host:port` without credentials. */
  sentinels: readonly string[];
  sentinelUsername?: string;
  sentinelPassword?: string;
  sentinelPasswordFile?: string;
  db?: number;
  /** There: TLS to the master. */
  tls?: TlsFiles;
  sentinelTls?: TlsFiles;
  natMap?: Readonly<Record<string, string>>;
  waitReplicas?: number;
}

export type RedisNode = AddressNode | SentinelNode;

const EXAMPLE = "redis://redis-0:6379,redis://redis-1:6379,redis://redis-2:6379";
const ENCODE =
  "special characters of a password are written percent-encoded, or use --redis-password-file";

function parseNode(entry: string, position: number, quotable: boolean): Parsed<AddressNode> {
  const parsed = parseAddress(entry, "6379");
  if ("problem" in parsed) {
    const named = quotable ? JSON.stringify(entry) : `address ${position + 1}`;
    return { problem: `${named} ${parsed.problem}` };
  }
  const { host, ...rest } = parsed.value;
  return { value: { name: `${position}/${host}`, ...rest } };
}

export interface Address {
  /** With its port. */
  host: string;
  /** Without credentials. */
  url: string;
  username?: string;
  password?: string;
}

/** `problem` does not repeat the address: there may be a password in it. */
export function parseAddress(entry: string, defaultPort: string): Parsed<Address> {
  const wrong = (why: string): Parsed<Address> => ({ problem: why });

  if (!/^rediss?:\/\//i.test(entry)) {
    return wrong("has no redis:// or rediss:// (TLS) in front, e.g. redis://redis-0:6379");
  }
  const url = URL.parse(entry);
  if (url === null) return wrong(`is no URL; ${ENCODE}`);
  if (url.search !== "" || url.hash !== "") return wrong(`has a ? or # in it; ${ENCODE}`);
  if (!/^(\/\d{0,3})?$/.test(url.pathname)) {
    return wrong("has a path that is no database number, e.g. redis://redis-0:6379/0");
  }
  const bare = url.hostname.replaceAll(/^\[|\]$/g, "");
  if (!isIPv6(bare) && !isHostName(bare)) {
    return wrong(`has no host name or address that can exist; ${ENCODE}`);
  }
  if (url.port === "0") return wrong("has port 0; write the port of the Redis server, e.g. 6379");

  let username: string;
  let password: string;
  try {
    username = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
  } catch {
    return wrong(`has a % that encodes nothing; ${ENCODE}`);
  }
  const host = `${url.hostname.toLowerCase()}:${url.port || defaultPort}`;
  const database = url.pathname === "/" ? "" : url.pathname;
  return {
    value: {
      host,
      url: `${url.protocol}//${host}${database}`,
      ...(username !== "" && { username }),
      ...(password !== "" && { password }),
    },
  };
}

/** Two nodes with one of these in common are one. */
function placesOf(node: RedisNode): string[] {
  if ("url" in node) return [node.name.slice(node.name.indexOf("/") + 1)];
  return node.sentinels.map((url) => `the master ${node.masterName} of ${url}`);
}

/** Quorum needs one node or at least three, each of them another server. */
export function countProblems(nodes: readonly RedisNode[]): string[] {
  const problems: string[] = [];
  const hosts = nodes.flatMap((node) => [...new Set(placesOf(node))]);
  for (const host of new Set(hosts.filter((candidate, i) => hosts.indexOf(candidate) !== i))) {
    problems.push(`${host} is given more than once; each address must be another Redis server`);
  }
  if (nodes.length === 2) {
    problems.push("two nodes survive no failure at all; write 3 or 5 addresses (or 1 for trials)");
  }
  return problems;
}

function parseNodes(given: string): Parsed<readonly RedisNode[]> {
  // A password with a comma in it would be spread over two entries: quote all of them or none.
  const quotable = !given.includes("@");
  const parsed = splitList(given).map((entry, position) => parseNode(entry, position, quotable));
  const problems = parsed.flatMap((node) => ("problem" in node ? [node.problem] : []));
  const nodes = parsed.flatMap((node) => ("value" in node ? [node.value] : []));
  if (problems.length === 0) problems.push(...countProblems(nodes));
  if (parsed.length === 0) problems.push(`holds no address; write e.g. ${EXAMPLE}`);
  return problems.length === 0 ? { value: nodes } : { problem: problems.join("; ") };
}

export const redisOption: Option<readonly RedisNode[]> = {
  placeholder: "URL,...",
  help:
    "Addresses of the independent Redis masters that elect by majority: 1 (no fault tolerance), " +
    "or 3 or more, best 3 or 5. redis:// or rediss:// (TLS), [user[:password]@]host[:port][/db].",
  defaultText: "required, but for --redis-config and --lock-backend kubernetes",
  repeatable: true,
  secret: true,
  parse: parseNodes,
};

export const redisPreviousOption: Option<readonly RedisNode[]> = {
  ...redisOption,
  help:
    "The value of --redis before it was changed, for a rolling update to another list of nodes: the old list is " +
    "retired, and the new one elects when what is locked by it has run out. Remove it when no replica has the old list.",
  defaultText: "none",
};

export const REDIS_REQUIRED = `is required; write e.g. ${EXAMPLE}, or give a file with --redis-config`;
export const ONE_LIST = "does not go together with --redis-config; keep one of them";
export const REDIS_UNUSED =
  "does not go together with --lock-backend kubernetes, which uses no Redis; keep one of them";

/** What has been given for all nodes. */
export type Shared = Login & { tls: TlsFiles };

/** What a node says itself goes before what is said for all of them. */
export function withShared<T extends RedisNode>(node: T, shared: Shared): T {
  const { username, password, passwordFile, tls } = shared;
  // One of its own, in whichever form, takes the place of the shared one: the lock accepts one or the other.
  const hasPassword = node.password !== undefined || node.passwordFile !== undefined;
  const own = {
    ...(username !== undefined && { username }),
    ...(!hasPassword && password !== undefined && { password }),
    ...(!hasPassword && passwordFile !== undefined && { passwordFile }),
    ...node,
  };
  if ("url" in node) {
    return node.url.startsWith("rediss:") ? { ...own, tls: { ...tls, ...node.tls } } : own;
  }
  const secure = node.sentinels.every((url) => url.startsWith("rediss:"));
  return {
    ...own,
    ...(node.tls !== undefined && { tls: { ...tls, ...node.tls } }),
    ...(secure && { sentinelTls: { ...tls, ...node.sentinelTls } }),
  };
}

/** The files with passwords, and the passwords that are in no file. */
export function secretsOf(nodes: readonly RedisNode[]): { files: string[]; texts: string[] } {
  const given = (words: readonly (string | undefined)[]) =>
    words.filter((word) => word !== undefined);
  const sentinel = nodes.filter((node) => "sentinels" in node);
  return {
    files: given([
      ...nodes.map((node) => node.passwordFile),
      ...sentinel.map((node) => node.sentinelPasswordFile),
    ]),
    texts: given([
      ...nodes.map((node) => node.password),
      ...sentinel.map((node) => node.sentinelPassword),
    ]),
  };
}
