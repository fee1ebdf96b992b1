import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { Redis } from "ioredis";
import { failureOf, NodeError, type NodeFailure } from "./reasons.ts";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** How to be let in. */
export interface Access {
  readonly username?: string;
  readonly password?: string;
  /** Read anew for every connection, so that a rotated password is taken up. */
  readonly passwordFile?: string;
  readonly tls?: ConnectionOptions;
}

export interface DialOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A TCP connection that is logged in, and how to speak of its errors. */
export interface Line {
  readonly client: Redis;
  readonly explain: (error: unknown) => NodeFailure;
}

/**
 * ioredis as a mere carrier of commands. One client is one TCP connection and is never used again after it: what was
 * in flight is known to be UNKNOWN, and nothing is queued, resent or executed later (docs/adr/0002-quorum-lock.md).
 */
function createClient(endpoint: Endpoint, access: Access, connectTimeoutMs: number): Redis {
  // An address has no server name (RFC 6066, section 3).
  const named = isIP(endpoint.host) === 0 ? { servername: endpoint.host } : {};
  return new Redis({
    host: endpoint.host,
    port: endpoint.port,
    ...(access.tls !== undefined && { tls: { ...named, ...access.tls } }),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    disconnectTimeout: 0,
    noDelay: true,
    // No second life for a command: a SET that lands late is a vote for a lock that nobody holds.
    retryStrategy: null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    enableAutoPipelining: false,
    // RESP2 needs no HELLO; AUTH, SELECT and INFO are sent by us, where their answers can be judged.
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
  });
}

/** Drops the TCP connection now; a hung peer must not keep it half open. */
export function discard(client: Redis): void {
  client.disconnect();
  // Undefined until the first connect has begun, whatever the types say.
  (client.stream as Redis["stream"] | undefined)?.destroy();
}

async function passwordOf(access: Access): Promise<string | undefined> {
  if (access.passwordFile === undefined) return access.password;
  try {
    return (await readFile(access.passwordFile, "utf8")).replace(/\r?\n$/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new NodeError("PASSWORDFILE", `cannot read ${access.passwordFile}: ${code ?? "unknown"}`);
  }
}

async function login(client: Redis, username: string | undefined, password: string): Promise<void> {
  try {
    await client.call("AUTH", ...(username === undefined ? [password] : [username, password]));
  } catch (error) {
    // "no password set" is no reason to stay away: the server lets everybody in.
    const { message } = error as Error;
    if (!/without any password configured|no password is set/.test(message)) throw error;
  }
}

/**
 * Connects, logs in and runs `greet`, all within the time.
 * @throws NodeError without secrets, as soon as the time is over or the signal aborts
 */
export async function dial<T>(
  endpoint: Endpoint,
  access: Access,
  options: DialOptions,
  greet: (client: Redis) => Promise<T>,
): Promise<{ readonly line: Line; readonly greeting: T }> {
  const password = await passwordOf(access);
  const explain = (error: unknown) => failureOf(error, password === undefined ? [] : [password]);
  const client = createClient(endpoint, access, options.timeoutMs);
  let firstError: unknown;
  client.on("error", (error: unknown) => {
    firstError ??= error;
  });

  const over = Promise.withResolvers<never>();
  const onAbort = () => over.reject(new NodeError("CLOSED", "the lock was closed"));
  const timer = setTimeout(
    () => over.reject(new NodeError("TIMEOUT", `no answer within ${options.timeoutMs} ms`)),
    options.timeoutMs,
  );
  if (options.signal.aborted) onAbort();
  options.signal.addEventListener("abort", onAbort);
  try {
    const greeting = async () => {
      await client.connect();
      if (password !== undefined) await login(client, access.username, password);
      return greet(client);
    };
    return { line: { client, explain }, greeting: await Promise.race([greeting(), over.promise]) };
  } catch (error) {
    discard(client);
    // connect() says no more than "Connection is closed."; the event before it had the cause.
    const cause = error instanceof NodeError ? error : (firstError ?? error);
    const { reason, message } = explain(cause);
    throw new NodeError(reason, message);
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", onAbort);
  }
}
