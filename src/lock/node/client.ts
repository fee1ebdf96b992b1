import { Redis } from "ioredis";
import type { NodeConfig } from "../options.ts";
import { scripts } from "../scripts.ts";
import { failureOf, NodeError, type NodeFailure, replyReason } from "./reasons.ts";

/** A connection that is let in, to a master that has our scripts. */
export interface ReadyClient {
  readonly client: Redis;
  /** INFO server: run_id, new with every start of the process */
  readonly runId: string;
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

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

/** @throws NodeError when the server cannot vote although it answers */
function checkInfo(info: string): string {
  const runId = field(info, "run_id");
  if (runId === undefined) throw new NodeError("PROTOCOL", "INFO names no run_id: not a Redis");
  if (field(info, "loading") === "1") throw new NodeError("LOADING", "loads its data set");
  if (field(info, "cluster_enabled") === "1") {
    throw new NodeError("CLUSTER", "runs in cluster mode; list independent masters");
  }
  if (field(info, "role") !== "master") {
    throw new NodeError("READONLY", "is a replica; list masters");
  }
  return runId;
}

async function handshake(client: Redis, config: NodeConfig, clientName: string): Promise<string> {
  const { username, password, db } = config;
  const lines: Promise<unknown>[] = [];
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
  // One write, one round trip: the answers come in this order.
  if (password !== undefined) {
    lines.push(username === undefined ? say("AUTH", password) : say("AUTH", username, password));
  }
  if (db !== 0) lines.push(say("SELECT", db));
  const info = say("INFO");
  lines.push(info);
  // EVAL without keys does nothing but fill the script cache of the server: no EVALSHA of ours misses it later.
  for (const { source } of Object.values(scripts)) lines.push(say("EVAL", source, 0));
  client.call("CLIENT", "SETNAME", clientName).catch(() => undefined);
  // The first that fails names the cause (a wrong password makes all the others fail too).
  const failed = (await Promise.allSettled(lines)).find((line) => line.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return checkInfo(String(await info));
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
      return handshake(client, config, options.clientName);
    };
    const runId = await Promise.race([login(), deadline.promise]);
    return { client, runId };
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
