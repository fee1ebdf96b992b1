import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../clock.ts";
import type { Grant } from "./validity.ts";

/**
 * Why a node did not vote. Error codes of the socket and of Redis as they are, plus our own:
 * TIMEOUT (sent, no answer within the deadline), PENDING (not answered when the majority had decided), CONNECTING,
 * CLOSED (this lock was closed), CLUSTER (a cluster-mode node), PROTOCOL (not Redis, or garbage).
 */
export type NodeReason = string;

/** What one node said about one key. */
export type NodeVerdict =
  /** granted, renewed or deleted: our value is (was) there. `mine`: an acquisition found it there already */
  | { readonly node: string; readonly outcome: "yes"; readonly mine?: true }
  | {
      readonly node: string;
      readonly outcome: "held";
      readonly holder: string;
      /** -1: the key has no TTL (not written by a lock) */
      readonly pttlMs: number;
    }
  | { readonly node: string; readonly outcome: "absent" }
  /** surely not executed there */
  | {
      readonly node: string;
      readonly outcome: "unavailable";
      readonly reason: NodeReason;
      readonly message: string;
    }
  /** sent and not answered: it may have been executed */
  | {
      readonly node: string;
      readonly outcome: "unknown";
      readonly reason: NodeReason;
      readonly message: string;
    };

/** The value that a majority of the nodes bears. */
export interface Holder {
  readonly value: string;
  readonly votes: number;
  /** the least of the TTLs on those nodes */
  readonly pttlMs: number;
}

/** `nodes`: fewer than a majority answered. `tooSlow`: the lease was used up before they had. */
export type NoQuorumReason = "nodes" | "tooSlow";

export type AcquireResult =
  | {
      readonly outcome: "acquired";
      readonly grant: Grant;
      readonly perNode: readonly NodeVerdict[];
    }
  /** `holder` null: a split vote, nobody has a majority; try again after a random delay */
  | {
      readonly outcome: "held";
      readonly holder: Holder | null;
      readonly perNode: readonly NodeVerdict[];
    }
  | {
      readonly outcome: "noQuorum";
      readonly reason: NoQuorumReason;
      readonly perNode: readonly NodeVerdict[];
    };

export type ExtendResult =
  | { readonly outcome: "renewed"; readonly grant: Grant; readonly perNode: readonly NodeVerdict[] }
  /** no majority can have our value any more; terminal for this value */
  | {
      readonly outcome: "lost";
      readonly holder: Holder | null;
      readonly perNode: readonly NodeVerdict[];
    }
  /** not known; try again until the grant before has run out */
  | {
      readonly outcome: "noQuorum";
      readonly reason: NoQuorumReason;
      readonly perNode: readonly NodeVerdict[];
    };

export interface ReleaseResult {
  /** `expired`: it had gone from a majority before. `unknown`: too few nodes answered to say; deletion goes on in the background. */
  readonly outcome: "released" | "expired" | "unknown";
  readonly perNode: readonly NodeVerdict[];
}

export interface Inspection {
  readonly holder: Holder | null;
  readonly perNode: readonly NodeVerdict[];
}

export interface LockEntry {
  readonly key: string;
  readonly value: string;
  readonly leaseMs: number;
}

export interface NodeHealth {
  readonly node: string;
  readonly state: "up" | "down" | "connecting";
  readonly reason?: NodeReason;
  readonly message?: string;
  /** smoothed round trip of this node's latest calls, milliseconds */
  readonly rttMs?: number;
  /** wall-clock milliseconds of the last change of state */
  readonly since: number;
}

export interface LockHealth {
  /** a majority of the configured nodes is up */
  readonly quorum: boolean;
  readonly up: number;
  readonly needed: number;
  readonly nodes: readonly NodeHealth[];
}

export interface LockWarning {
  readonly code: "NoFaultTolerance" | "EvenNodeCount";
  readonly message: string;
}

export interface LockAttempt {
  readonly operation: "acquire" | "extend" | "release";
  readonly outcome: AcquireResult["outcome"] | ExtendResult["outcome"] | ReleaseResult["outcome"];
  readonly durationMs: number;
}

/** Hooks for metrics and logs. All optional; they run synchronously and must not throw. */
export interface LockObserver {
  attempt?(attempt: LockAttempt): void;
  nodeReply?(reply: { readonly node: string; readonly rttMs: number }): void;
  healthChanged?(health: LockHealth): void;
  warning?(warning: LockWarning): void;
}

export interface NodeOptions {
  /** redis[s]://[user[:password]@]host[:port][/db] */
  readonly url: string;
  /** Shown in outcomes, health and metrics; default `host:port`, with `/db` when that is not 0. */
  readonly name?: string;
  /** Instead of the user and password in the URL. */
  readonly username?: string;
  readonly password?: string;
  /** For rediss:// only: ca, cert, key, servername … */
  readonly tls?: ConnectionOptions;
}

export interface QuorumLockOptions {
  /** One entry per independent Redis master. */
  readonly nodes: readonly (string | NodeOptions)[];
  readonly clock?: Clock;
  /** In [0, 1); for back-off jitter. */
  readonly random?: () => number;
  /** Deadline of one call to one node, milliseconds; three times that without any reply and the connection is made anew. */
  readonly nodeTimeoutMs?: number;
  /** Upper bound of the reconnect back-off, milliseconds. */
  readonly reconnectMaxMs?: number;
  /** PING after so many idle milliseconds. */
  readonly heartbeatMs?: number;
  /** CLIENT SETNAME of each connection. */
  readonly clientName?: string;
  /** Prefix of the short-lived keys by which each connection tries its rights; ACL users must be allowed to write them. */
  readonly probeKey?: string;
  readonly observer?: LockObserver;
}
