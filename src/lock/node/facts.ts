import type { NodeFacts } from "../types.ts";
import { NodeError, type NodeFailure } from "./reasons.ts";

/** Reads the default sections of INFO. @throws NodeError when this is no Redis that could vote */
export function parseInfo(info: string): NodeFacts {
  const fields = new Map<string, string>();
  for (const line of info.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  const text = (name: string) => fields.get(name) ?? "";
  const number = (name: string) => Number(fields.get(name) ?? 0);

  if (text("run_id") === "") {
    throw new NodeError("PROTOCOL", "INFO names no run_id: this is not a Redis server");
  }
  if (text("loading") === "1") throw new NodeError("LOADING", "it loads its data set");
  if (text("cluster_enabled") === "1") {
    throw new NodeError("CLUSTER", "it runs in cluster mode; list independent masters");
  }
  if (text("role") !== "master") throw new NodeError("READONLY", "it is a replica; list masters");
  return {
    version: text("redis_version"),
    runId: text("run_id"),
    replicationId: text("master_replid"),
    role: text("role"),
    uptimeSeconds: number("uptime_in_seconds"),
    usedMemoryBytes: number("used_memory"),
    maxMemoryBytes: number("maxmemory"),
    evictionPolicy: text("maxmemory_policy"),
    cpuSeconds: number("used_cpu_user") + number("used_cpu_sys"),
    connectedReplicas: number("connected_slaves"),
    promoted: number("second_repl_offset") > 0,
  };
}

/** Clocks that are further apart than this (ms) are not kept by anything: sooner or later one of them is set by a step. */
const CLOCKS_APART_MS = 1_000;

/** What somebody should look at although the node's votes can be relied on today (R8); null: nothing. */
export function concernOf({ clockOffsetMs = 0 }: NodeFacts): NodeFailure | null {
  if (Math.abs(clockOffsetMs) <= CLOCKS_APART_MS) return null;
  const where = clockOffsetMs > 0 ? "ahead of" : "behind";
  return {
    reason: "CLOCK",
    message: `its wall clock is over a second ${where} ours, and a step that sets one of them right ends locks early or late: keep both by NTP`,
  };
}

/** A TIME answer that took longer than this (ms) tells more of the way than of the clock. */
const TELLING_RTT_MS = 500;

/** Milliseconds that the node's clock is ahead of ours, by a TIME answer that took `rttMs`; undefined: it does not say. */
export function clockOffset(answer: unknown, nowMs: number, rttMs: number): number | undefined {
  if (rttMs > TELLING_RTT_MS) return undefined;
  const [seconds, micros] = Array.isArray(answer) ? (answer as unknown[]).map(Number) : [];
  if (seconds === undefined || micros === undefined) return undefined;
  return seconds * 1000 + micros / 1000 - (nowMs - rttMs / 2);
}

/** The process and its data: another process, or other data, may have forgotten what these promised. */
export function incarnationOf(facts: NodeFacts, history: string): string {
  return `${facts.runId}/${history}`;
}

/** Whether a connection speaks to what it spoke to when it began. */
export function isSameServer(one: NodeFacts, other: NodeFacts): boolean {
  return one.runId === other.runId && one.replicationId === other.replicationId;
}

/**
 * How long a node that has just been connected to must not vote (R7), milliseconds. Every vote it may have forgotten
 * has run out by then.
 * @param now the incarnation that it is
 * @param before the incarnation that we knew; undefined at first sight
 * @param maxLeaseMs the longest lease in use; 0 when it is not known
 * @param trusted at first sight: it cannot have forgotten anything that matters
 */
export function quarantineOf(
  facts: NodeFacts,
  now: string,
  before: string | undefined,
  maxLeaseMs: number,
  trusted = false,
): number {
  if (before === now) return 0;
  // Changed under our eyes. When is not known: its uptime says nothing if another process took the address over.
  if (before !== undefined) return maxLeaseMs;
  if (trusted) return 0;
  // First sight of a promoted replica: it may have been promoted a moment ago.
  if (facts.promoted) return maxLeaseMs;
  // Redis counts in whole seconds on both sides: it may be up for almost a second less than it says.
  return Math.max(0, maxLeaseMs - Math.max(0, facts.uptimeSeconds - 1) * 1000);
}

/** Why a node's votes could not be relied on (R8); null: safe. */
export function unsafety(facts: NodeFacts, waitReplicas = 0): NodeFailure | null {
  if (facts.maxMemoryBytes > 0 && !["noeviction", ""].includes(facts.evictionPolicy)) {
    return {
      reason: "EVICTION",
      message: `maxmemory-policy is ${facts.evictionPolicy}: locks could be evicted; set noeviction`,
    };
  }
  if (facts.connectedReplicas < waitReplicas) {
    return {
      reason: "NOREPLICAS",
      message: `${facts.connectedReplicas} replicas are connected, waitReplicas asks for ${waitReplicas}`,
    };
  }
  return null;
}
