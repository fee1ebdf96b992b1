import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../clock.ts";
import type { LockLostReason, NotAcquiredReason } from "./errors.ts";
import type { Grant } from "./validity.ts";

/**
 * Why a node did not vote. Error codes of the socket and of Redis as they are, plus our own:
 * TIMEOUT (sent, no answer within the deadline), PENDING (not answered when the majority had decided), CONNECTING,
 * CLOSED (this lock was closed), CLUSTER (a cluster-mode node), PROTOCOL (not Redis, or garbage), INCARNATION (another
 * process, or other data, than a moment ago), EVICTION, DUPLICATE, NODELIST (unsafe), FAILOVER (Sentinel names another
 * master). CLOCK keeps no node from voting: its clock and ours are far apart.
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
    }
  /** answers, but may have forgotten votes that still count: it restarted, or another process took its place (R7) */
  | { readonly node: string; readonly outcome: "quarantined"; readonly remainingMs: number }
  /**
   * answers, but what it says could not be relied on (R8): it evicts keys, it is the same Redis as another node, or it
   * serves another list of nodes
   */
  | {
      readonly node: string;
      readonly outcome: "unsafe";
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

/** From INFO and TIME of a node; as old as the last look (`factsMs`). */
export interface NodeFacts {
  readonly version: string;
  readonly runId: string;
  readonly replicationId: string;
  readonly role: string;
  readonly uptimeSeconds: number;
  readonly usedMemoryBytes: number;
  /** 0: no limit */
  readonly maxMemoryBytes: number;
  readonly evictionPolicy: string;
  /** user and system time of the process */
  readonly cpuSeconds: number;
  readonly connectedReplicas: number;
  /** it was a replica before it became this master */
  readonly promoted: boolean;
  /** its wall clock less ours, milliseconds */
  readonly clockOffsetMs?: number;
}

export interface NodeHealth {
  readonly node: string;
  /** Only `up` votes. */
  readonly state: "up" | "down" | "connecting" | "quarantined" | "unsafe";
  readonly reason?: NodeReason;
  readonly message?: string;
  /** it votes, and somebody should look at it (R8): CLOCK */
  readonly concern?: { readonly reason: NodeReason; readonly message: string };
  /** smoothed round trip of this node's latest calls, milliseconds */
  readonly rttMs?: number;
  /** wall-clock milliseconds of the last change of state */
  readonly since: number;
  readonly facts?: NodeFacts;
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
  readonly perNode: readonly NodeVerdict[];
}

/** Hooks for metrics and logs. All optional; they run synchronously and must not throw. */
export interface LockObserver {
  attempt?(attempt: LockAttempt): void;
  nodeReply?(reply: { readonly node: string; readonly rttMs: number }): void;
  healthChanged?(health: LockHealth): void;
  warning?(warning: LockWarning): void;
  /** An acquisition with its waiting has ended; failed ones too. */
  waited?(wait: {
    readonly outcome: "acquired" | NotAcquiredReason;
    readonly waitMs: number;
    readonly tries: number;
  }): void;
  /** A held lock has ended. */
  held?(hold: {
    readonly end: LockLostReason;
    readonly holdMs: number;
    readonly leaseMs: number;
    /** holdMs / leaseMs: near or above 1 without a watchdog, the lease is too short */
    readonly shareOfLease: number;
  }): void;
}

export interface NodeOptions {
  /** redis[s]://[user[:password]@]host[:port][/db] */
  readonly url: string;
  /** Shown in outcomes, health and metrics; default `host:port`, with `/db` when that is not 0. */
  readonly name?: string;
  /** Instead of the user and password in the URL. */
  readonly username?: string;
  readonly password?: string;
  /** Instead of a password: a file that holds it, read anew for every connection (rotation). */
  readonly passwordFile?: string;
  /** For rediss:// only: ca, cert, key, servername … */
  readonly tls?: ConnectionOptions;
}

/** A master that Redis Sentinel looks after. A failover counts as a loss of data: the node is quarantined. */
export interface SentinelNodeOptions {
  /** redis[s]://[user[:password]@]host[:port] of every sentinel; user and password of the first serve for all. */
  readonly sentinels: readonly string[];
  /** Instead of the user and password in the first of these URLs. */
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  /** Instead of a password of the sentinels: a file that holds it, read anew for every connection. */
  readonly sentinelPasswordFile?: string;
  readonly masterName: string;
  /**
   * By this the list of nodes knows it, wherever it is: the same for everybody who lists it. Default: the name of the
   * master; needed where two groups of sentinels call theirs the same.
   */
  readonly name?: string;
  readonly username?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  readonly db?: number;
  /** TLS to the master. */
  readonly tls?: ConnectionOptions;
  /** TLS to the sentinels, with rediss:// URLs. */
  readonly sentinelTls?: ConnectionOptions;
  /** Addresses that Sentinel names → addresses that can be reached, both "host:port". */
  readonly natMap?: Readonly<Record<string, string>>;
  /** A vote counts only when so many replicas have it too (WAIT); costs a round trip to them. Default 0. */
  readonly waitReplicas?: number;
}

export interface QuorumLockOptions {
  /** One entry per independent Redis master. */
  readonly nodes: readonly (string | NodeOptions | SentinelNodeOptions)[];
  /**
   * The list that `nodes` takes the place of. It is retired first, and `nodes` vote when what is held by it has run out:
   * one `maxLeaseMs` after a majority of it was reached. Leave it in until nobody uses the old list any more.
   */
  readonly previousNodes?: readonly (string | NodeOptions | SentinelNodeOptions)[];
  /**
   * Name of the list of nodes: whoever locks on these nodes must have the same. Default: made of their addresses. Give one
   * where the same nodes go by different addresses.
   */
  readonly listId?: string;
  /** Name of the list before, where it had one. */
  readonly previousListId?: string;
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
  /**
   * The longest lease that anybody uses on these nodes. A node that restarted does not vote for so long, because it may
   * have forgotten votes; with it given, that holds also for restarts before this process began. Default: the longest
   * lease this lock has used, and restarts it has seen.
   */
  readonly maxLeaseMs?: number;
  /**
   * A list that none of its nodes bears is new, and its nodes vote at once although they have just started. Default: it
   * may be one that has lost all its data. For users whose effects are fenced elsewhere.
   */
  readonly trustNewList?: boolean;
  /** How often INFO and TIME of each node are read, milliseconds. */
  readonly factsMs?: number;
  readonly observer?: LockObserver;
}
