import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import type { NodeConfig } from "../options.ts";
import { scripts } from "../scripts.ts";
import type { NodeFacts } from "../types.ts";
import { parseInfo } from "./facts.ts";
import { failureOf, NodeError, type NodeFailure, replyReason } from "./reasons.ts";

/** A connection that is let in, to a master that has our scripts. */
export interface ReadyClient {
  readonly client: Redis;
  readonly facts: NodeFacts;
}

/**
 * ioredis as a mere carrier of commands. One client is one TCP connection and is never used again after it: what was
 * in flight is known to be UNKNOWN, and nothing is queued, resent or executed later (docs/adr/0002-quorum-lock.md).
 */
function createClient(config: NodeConfig, connectTimeoutMs: number): Redis {
  return new Redis({
    host: config.host,
    port: config.port,
    ...(config.tls !== undefined && { tls: config.tls }),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    disconnectTimeout: 0,
    noDelay: true,
    // No second life for a command: a SET that lands late is a vote for a lock that nobody holds.
    retryStrategy: null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    enableAutoPipelining: false,
    // RESP2 needs no HELLO; AUTH, SELECT and INFO are sent below, where their answers can be judged.
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
  });
}

/**
 * Every script once with EVAL (fills the server's script cache, so that no EVALSHA misses it later) and with EVALSHA,
 * on a key of its own: an ACL that lacks a right is found now, not at the first lock.
 */
function probe(key: string): [string, ...(string | number)[]][] {
  const { acquire, extend, release, inspect } = scripts;
  const [value, other, ms] = ["probe", "other", 1_000];
  return [
    // Taken, taken again (GET, PEXPIRE), and seen by somebody else (PTTL).
    ["EVAL", acquire.source, 3, key, key, key, "", value, ms, value, ms, other, ms],
    ["EVAL", extend.source, 1, key, value, ms],
    ["EVAL", inspect.source, 1, key],
    ["EVAL", release.source, 1, key, value],
    ["EVALSHA", release.sha, 1, key, value],
  ];
}

/** @throws NodeError when an answer of the probe names a right that is missing; a full memory is no reason to stay away */
function checkProbe(answer: unknown): void {
  for (const item of Array.isArray(answer) ? (answer as unknown[]) : []) {
    const [, detail] = Array.isArray(item) ? (item as unknown[]) : [];
    if (typeof detail !== "string" || replyReason(detail) !== "NOPERM") continue;
    throw new NodeError("NOPERM", `the ACL user may not run the lock scripts: ${detail}`);
  }
}

async function handshake(
  client: Redis,
  config: NodeConfig,
  options: { readonly clientName: string; readonly probeKey: string },
): Promise<NodeFacts> {
  const { username, password, db } = config;
  const say = async (...words: [string, ...(string | number)[]]): Promise<unknown> => {
    try {
      return await client.call(...words);
    } catch (error) {
      const { message } = error as Error;
      // "no password set" is no reason to stay away: the server lets everybody in.
      if (words[0] === "AUTH" && /without any password configured|no password is set/.test(message))
        return "OK";
      if (replyReason(message) !== "NOPERM") throw error;
      throw new NodeError("NOPERM", `the ACL user may not call ${words[0]}: ${message}`);
    }
  };
  // One by one: a server that does not know us yet cuts the connection of whoever says too much.
  if (password !== undefined) {
    await (username === undefined ? say("AUTH", password) : say("AUTH", username, password));
  }
  if (db !== 0) await say("SELECT", db);
  const facts = parseInfo(String(await say("INFO")));
  client.call("CLIENT", "SETNAME", options.clientName).catch(() => undefined);
  const key = `${options.probeKey}:${randomUUID()}`;
  for (const answer of await Promise.all(probe(key).map((words) => say(...words)))) {
    checkProbe(answer);
  }
  return facts;
}

function secretsOf(config: NodeConfig): string[] {
  return config.password === undefined ? [] : [config.password];
}

/** What can be said of an error of this node. */
export function explain(error: unknown, config: NodeConfig): NodeFailure {
  return failureOf(error, secretsOf(config));
}

/** Drops the TCP connection now; a hung peer must not keep it half open. */
export function discard(client: Redis): void {
  client.disconnect();
  // Undefined until the first connect has begun, whatever the types say.
  (client.stream as Redis["stream"] | undefined)?.destroy();
}

/**
 * Connects, logs in and checks one node.
 * @throws NodeError, without secrets, within `timeoutMs`, or as soon as `signal` aborts
 */
export async function connectClient(
  config: NodeConfig,
  options: {
    readonly timeoutMs: number;
    readonly clientName: string;
    readonly probeKey: string;
    readonly signal: AbortSignal;
  },
): Promise<ReadyClient> {
  const client = createClient(config, options.timeoutMs);
  const firstErrors: unknown[] = [];
  client.on("error", (error: unknown) => firstErrors.length < 1 && firstErrors.push(error));

  const deadline = Promise.withResolvers<never>();
  const onAbort = () => deadline.reject(new NodeError("CLOSED", "the lock was closed"));
  const timer = setTimeout(
    () => deadline.reject(new NodeError("TIMEOUT", `no answer within ${options.timeoutMs} ms`)),
    options.timeoutMs,
  );
  options.signal.addEventListener("abort", onAbort);
  try {
    const login = async () => {
      await client.connect();
      return handshake(client, config, options);
    };
    const facts = await Promise.race([login(), deadline.promise]);
    return { client, facts };
  } catch (error) {
    discard(client);
    // connect() says no more than "Connection is closed."; the event before it had the cause.
    const cause = error instanceof NodeError ? error : (firstErrors[0] ?? error);
    const { reason, message } = explain(cause, config);
    throw new NodeError(reason, message);
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", onAbort);
  }
}
