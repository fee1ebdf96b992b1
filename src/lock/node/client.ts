import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { NodeConfig } from "../options.ts";
import { scripts } from "../scripts.ts";
import type { NodeFacts } from "../types.ts";
import { dial, type DialOptions, type Endpoint, type Line } from "./dial.ts";
import { parseInfo } from "./facts.ts";
import { NodeError, replyReason } from "./reasons.ts";
import { locateMaster } from "./sentinel.ts";

/** A connection that is let in, to a master that runs our scripts. */
export interface ReadyClient extends Line {
  readonly facts: NodeFacts;
  readonly markerKey: string;
  /** What is stored there: the history of the data that this connection writes to. */
  readonly marker: string;
  readonly endpoint: Endpoint;
}

export interface ConnectOptions extends DialOptions {
  readonly clientName: string;
  readonly probeKey: string;
}

function markerKey(options: ConnectOptions): string {
  return `${options.probeKey}:incarnation`;
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
    ["EVAL", acquire.source, 4, key, key, key, key, "", value, ms, value, ms, other, ms],
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

/**
 * The marker of a server's data: written once, without TTL, by whichever client comes first. Gone or changed means that
 * votes may be gone too. '' where it cannot be written (full memory).
 */
async function markerOf(client: Redis, key: string): Promise<string> {
  const [, marker] = await Promise.allSettled([
    client.call("SET", key, randomUUID(), "NX"),
    client.call("GET", key),
  ]);
  return marker.status === "fulfilled" && typeof marker.value === "string" ? marker.value : "";
}

async function introduce(
  client: Redis,
  db: number,
  options: ConnectOptions,
): Promise<{ readonly facts: NodeFacts; readonly marker: string }> {
  const say = async (...words: [string, ...(string | number)[]]): Promise<unknown> => {
    try {
      return await client.call(...words);
    } catch (error) {
      const { message } = error as Error;
      if (replyReason(message) === "NOPERM") {
        throw new NodeError("NOPERM", `the ACL user may not call ${words[0]}: ${message}`);
      }
      if (/unknown command/i.test(message)) {
        throw new NodeError("NOCOMMAND", `the server has no ${words[0]}: renamed or disabled`);
      }
      throw error;
    }
  };
  if (db !== 0) await say("SELECT", db);
  const facts = parseInfo(String(await say("INFO")));
  client.call("CLIENT", "SETNAME", options.clientName).catch(() => undefined);
  const key = `${options.probeKey}:${randomUUID()}`;
  for (const answer of await Promise.all(probe(key).map((words) => say(...words)))) {
    checkProbe(answer);
  }
  return { facts, marker: await markerOf(client, markerKey(options)) };
}

/** Where the node's master is now. @throws NodeError */
export async function locate(config: NodeConfig, options: DialOptions): Promise<Endpoint> {
  return config.sentinel === undefined ? config : locateMaster(config.sentinel, options);
}

/** Finds, connects, logs in and checks one node. @throws NodeError, without secrets, within twice `timeoutMs` */
export async function connectClient(
  config: NodeConfig,
  options: ConnectOptions,
): Promise<ReadyClient> {
  const endpoint = await locate(config, options);
  const { line, greeting } = await dial(endpoint, config.access, options, (client) =>
    introduce(client, config.db, options),
  );
  return { ...line, ...greeting, markerKey: markerKey(options), endpoint };
}
