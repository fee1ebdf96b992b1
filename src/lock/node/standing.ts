import { performance } from "node:perf_hooks";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../clock.ts";
import type { NodeFacts, NodeHealth, NodeVerdict } from "../types.ts";
import { concernOf, incarnationOf, quarantineOf, unsafety } from "./facts.ts";
import type { ReadyClient } from "./client.ts";
import type { NodeFailure } from "./reasons.ts";

/** Whether a node may vote, and why not. */
export interface Standing {
  /** A connection is ready. @returns whether the server is the incarnation of the connection before */
  connected(ready: Pick<ReadyClient, "facts" | "marker" | "isNew">): boolean;
  disconnected(failure: NodeFailure): void;
  silence(silent: boolean): void;
  /** Another node connected: is this one its twin, does that one serve another list? */
  recheck(): void;
  /** Newer facts of the same connection. */
  learn(facts: NodeFacts): void;
  onRtt(rttMs: number): void;
  /** What a node that must not vote says to whoever asks; null: it may vote. */
  bar(): NodeVerdict | null;
  /** Why no connection is there. */
  failure(): NodeFailure;
  health(): NodeHealth;
  close(failure: NodeFailure): void;
}

export interface StandingOptions {
  readonly name: string;
  readonly clock: Clock;
  /** The longest lease in use, as far as is known; milliseconds. */
  readonly maxLeaseMs: () => number;
  /** Whether it was given for restarts before this process as well; otherwise nothing is known of leases before. */
  readonly maxLeaseGiven: boolean;
  /** Another node that is this same process, if there is one (R8). */
  readonly twinOf: (runId: string) => string | undefined;
  /** Why the list of nodes keeps this one from voting. */
  readonly listTrouble: (node: string) => NodeFailure | undefined;
  /** A list that no node bears is a new one, and nothing was locked there. */
  readonly trustNewList: boolean;
  readonly waitReplicas: number;
  readonly onChange: () => void;
}

const RTT_WEIGHT = 0.2;

interface Shown {
  readonly state: NodeHealth["state"];
  readonly reason: string | undefined;
  readonly concern: string | undefined;
}

export function createStanding(options: StandingOptions): Standing {
  const { name: node, clock } = options;
  let link: "connecting" | "down" | "up" = "connecting";
  let failure: NodeFailure = { reason: "CONNECTING", message: "not connected yet" };
  let silent = false;
  let facts: NodeFacts | undefined;
  let incarnation: string | undefined;
  let unsafe: NodeFailure | null = null;
  let quarantineEnds = 0;
  let quarantineTimer: NodeJS.Timeout | undefined;
  let rttMs: number | undefined;
  let shown: Shown = { state: "connecting", reason: failure.reason, concern: undefined };
  let since = clock.now();

  const quarantineLeft = () => Math.max(0, quarantineEnds - performance.now());

  function state(): NodeHealth["state"] {
    if (link !== "up") return link;
    if (silent) return "down";
    if (unsafe !== null) return "unsafe";
    return quarantineLeft() > 0 ? "quarantined" : "up";
  }

  function why(): NodeFailure | null {
    switch (state()) {
      case "up":
        return null;
      case "unsafe":
        return unsafe;
      case "quarantined":
        return {
          reason: "QUARANTINED",
          message: `it restarted or was replaced, and may have forgotten votes; votes again in ${Math.ceil(quarantineLeft() / 1000)} s`,
        };
      case "connecting":
      case "down":
        return silent && link === "up"
          ? { reason: "TIMEOUT", message: "does not answer" }
          : failure;
    }
  }

  const concern = () => (facts === undefined ? null : concernOf(facts));

  /** Tells about a change, once. */
  function refresh(): void {
    const now: Shown = { state: state(), reason: why()?.reason, concern: concern()?.reason };
    if (isDeepStrictEqual(now, shown)) return;
    if (now.state !== shown.state) since = clock.now();
    shown = now;
    options.onChange();
  }

  function judge(): void {
    if (facts === undefined) return;
    const twin = options.twinOf(facts.runId);
    unsafe =
      options.listTrouble(node) ??
      (twin === undefined
        ? unsafety(facts, options.waitReplicas)
        : { reason: "DUPLICATE", message: `it is the same Redis process as ${twin}` });
  }

  function quarantine(ms: number): void {
    if (ms <= 0) return;
    // A second restart must not shorten what the first began.
    quarantineEnds = Math.max(quarantineEnds, performance.now() + ms);
    clearTimeout(quarantineTimer);
    if (quarantineLeft() > 0) quarantineTimer = setTimeout(refresh, quarantineLeft() + 1);
  }

  return {
    connected({ facts: next, marker, isNew }) {
      const before = incarnation;
      facts = next;
      incarnation = incarnationOf(next, marker.history);
      const trusted = !options.maxLeaseGiven || (isNew && options.trustNewList);
      quarantine(quarantineOf(next, incarnation, before, options.maxLeaseMs(), trusted));
      link = "up";
      silent = false;
      judge();
      refresh();
      return before === incarnation;
    },
    disconnected(next) {
      if (link === "up") facts = undefined;
      link = "down";
      silent = false;
      failure = { reason: next.reason, message: next.message };
      refresh();
    },
    silence(next) {
      silent = next;
      refresh();
    },
    recheck() {
      judge();
      refresh();
    },
    learn(next) {
      facts = next;
      judge();
      refresh();
    },
    onRtt(ms) {
      rttMs = rttMs === undefined ? ms : rttMs + RTT_WEIGHT * (ms - rttMs);
    },
    bar() {
      if (unsafe !== null) return { node, outcome: "unsafe", ...unsafe };
      if (quarantineEnds === 0) return null;
      const remainingMs = quarantineLeft();
      return remainingMs > 0 ? { node, outcome: "quarantined", remainingMs } : null;
    },
    failure: () => failure,
    health() {
      const worry = concern();
      return {
        node,
        state: state(),
        ...why(),
        ...(worry !== null && { concern: worry }),
        ...(rttMs !== undefined && { rttMs }),
        since,
        ...(facts !== undefined && { facts }),
      };
    },
    close(why) {
      clearTimeout(quarantineTimer);
      failure = why;
    },
  };
}
