import { isIPv6 } from "node:net";
import { isHostName, splitList } from "./option.ts";
import type { Option, Parsed } from "./option.ts";

/** One independent Redis master. */
export interface RedisNode {
  /** `0/redis-0:6379`: position, host and port. Without credentials, fit for logs and labels. */
  name: string;
  /** `redis[s]://host:port[/db]` without credentials. */
  url: string;
  username?: string;
  password?: string;
  /** Instead of a password; read anew for every connection, so that it can be rotated. */
  passwordFile?: string;
}

const EXAMPLE = "redis://redis-0:6379,redis://redis-1:6379,redis://redis-2:6379";
const ENCODE =
  "special characters of a password are written percent-encoded, or use --redis-password-file";

function parseNode(entry: string, position: number, quotable: boolean): Parsed<RedisNode> {
  const named = quotable ? JSON.stringify(entry) : `address ${position + 1}`;
  const wrong = (why: string): Parsed<RedisNode> => ({ problem: `${named} ${why}` });

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
  const host = `${url.hostname.toLowerCase()}:${url.port || "6379"}`;
  const database = url.pathname === "/" ? "" : url.pathname;
  return {
    value: {
      name: `${position}/${host}`,
      url: `${url.protocol}//${host}${database}`,
      ...(username !== "" && { username }),
      ...(password !== "" && { password }),
    },
  };
}

/** Quorum needs one node or at least three, each of them another server. */
function countProblems(nodes: RedisNode[]): string[] {
  const problems: string[] = [];
  const hosts = nodes.map((node) => node.name.slice(node.name.indexOf("/") + 1));
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
  defaultText: "required, but for --lock-backend kubernetes",
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

export const REDIS_REQUIRED = `is required; write e.g. ${EXAMPLE}`;
export const REDIS_UNUSED =
  "does not go together with --lock-backend kubernetes, which uses no Redis; keep one of them";
