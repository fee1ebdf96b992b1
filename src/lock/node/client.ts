import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Membership } from "../membership.ts";
import type { NodeConfig } from "../options.ts";
import { scripts } from "../scripts.ts";
import type { NodeFacts } from "../types.ts";
import { dial, type DialOptions, discard, type Endpoint, type Line } from "./dial.ts";
import { parseInfo } from "./facts.ts";
import { enlist, type Marker, newHistory } from "./marker.ts";
import { NodeError, replyReason } from "./reasons.ts";
import { locateMaster } from "./sentinel.ts";

/** A connection that is let in, to a master that runs our scripts. */
export interface ReadyClient extends Line {
  readonly facts: NodeFacts;
  readonly markerKey: string;
  /** What is stored there. */
  readonly marker: Marker;
  /** The list of nodes was founded with the data of this connection, by this process of the server. */
  readonly isNew: boolean;
  readonly endpoint: Endpoint;
}

export interface ConnectOptions extends DialOptions {
  readonly clientName: string;
  readonly probeKey: string;
  readonly membership: Membership;
}

type Words = [name: string, ...args: (string | number)[]];

/**
 * Every script once with EVAL (fills the server's script cache, so that no EVALSHA misses it later) and with EVALSHA,
 * on a key of its own: an ACL that lacks a right is found now, not at the first lock.
 */
function probe(key: string): Words[] {
  const { acquire, extend, release, inspect } = scripts;
  const [value, other, ms] = ["probe", "other", 1_000];
  return [
    // Taken, taken again (GET, PEXPIRE), and seen by somebody else (PTTL).
    ["EVAL", acquire.source, 4, key, key, key, key, "", value, ms, value, ms, other, ms],
    ["EVAL", extend.source, 2, key, key, "", value, ms],
    ["EVAL", inspect.source, 1, key],
    ["EVAL", release.source, 1, key, value],
    ["EVALSHA", release.sha, 1, key, value],
  ];
}

/** Beside the scripts: the heartbeat, the clock, the replicas. Without them a vote would fail later, or facts grow old. */
function otherCommands(waitReplicas: number): Words[] {
  return [["PING"], ["TIME"], ...(waitReplicas > 0 ? [["WAIT", 0, 0] satisfies Words] : [])];
}

/** What the scripts call. Redis 7.0 does not say which of them the user may not call. */
function scriptCommands(key: string): Words[] {
  return [
    ["SET", key, "probe", "PX", 1_000],
    ["GET", key],
    ["PTTL", key],
    ["PEXPIRE", key, 1_000],
    ["DEL", key],
  ];
}

/** An answer of the probe that says that a right is missing; a full memory is no reason to stay away. */
function refusedRight(answer: unknown): string | undefined {
  // For one key it is that key's item, for several a list of them.
  const items = Array.isArray(answer) ? [answer, ...(answer as unknown[])] : [];
  const details = items.map((item) => (Array.isArray(item) ? (item as unknown[])[1] : undefined));
  return details.find((d): d is string => typeof d === "string" && replyReason(d) === "NOPERM");
}

async function introduce(
  client: Redis,
  { name, db, waitReplicas }: NodeConfig,
  options: ConnectOptions,
): Promise<{ readonly facts: NodeFacts; readonly markerKey: string; readonly marker: Marker }> {
  const say = async (...words: Words): Promise<unknown> => {
    try {
      return await client.call(...words);
    } catch (error) {
      const { message } = error as Error;
      // Not the script itself, but a command in it.
      if (/user executing the script/.test(message)) return ["", message];
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
  const all = (commands: Words[]) => Promise.all(commands.map((words) => say(...words)));
  const [answers] = await Promise.all([all(probe(key)), all(otherCommands(waitReplicas))]);
  const refused = answers.map(refusedRight).find((detail) => detail !== undefined);
  if (refused !== undefined) {
    for (const words of scriptCommands(key)) await say(...words);
    throw new NodeError("NOPERM", `the ACL user may not run the lock scripts: ${refused}`);
  }
  const markerKey = `${options.probeKey}:incarnation`;
  const entry = options.membership.entry(newHistory(false, facts.runId), false);
  const marker = await enlist(client, markerKey, entry);
  options.membership.saw(name, marker);
  return { facts, markerKey, marker };
}

/** Data without a list are given ours, when it is known that no other node serves another one. */
async function found(
  { client, explain }: Line,
  { name }: NodeConfig,
  { membership, signal, timeoutMs }: ConnectOptions,
  markerKey: string,
  { runId }: NodeFacts,
): Promise<Marker> {
  const over = Promise.withResolvers<never>();
  const onAbort = () => over.reject(new NodeError("CLOSED", "the lock was closed"));
  const late = () => over.reject(new NodeError("TIMEOUT", `no answer within ${timeoutMs} ms`));
  let timer: NodeJS.Timeout | undefined;
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    await Promise.race([membership.allLookedAt, over.promise]);
    timer = setTimeout(late, timeoutMs);
    const entry = membership.entry(newHistory(membership.isFounding(), runId), true);
    const marker = await Promise.race([enlist(client, markerKey, entry), over.promise]);
    membership.saw(name, marker);
    return marker;
  } catch (error) {
    discard(client);
    const { reason, message } = explain(error);
    throw new NodeError(reason, message);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
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
    introduce(client, config, options),
  );
  const { facts, markerKey } = greeting;
  const bearsList = greeting.marker.list !== "";
  const marker = bearsList ? greeting.marker : await found(line, config, options, markerKey, facts);
  return { ...line, facts, markerKey, marker, isNew: marker.foundedBy === facts.runId, endpoint };
}
