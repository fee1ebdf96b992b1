import type { Holder, NodeVerdict } from "./types.ts";

/** Why a configuration or an argument was refused. */
export type LockConfigCode =
  | "NoNodes"
  | "TwoNodes"
  | "DuplicateNode"
  | "BadNode"
  | "BadUrl"
  | "BadLease"
  | "BadKey"
  | "BadValue"
  | "BadOption";

/**
 * A wrong configuration or a wrong argument: thrown at once, before anything is sent. The message names the field,
 * the value (never a password) and the way out. Two are told by the nodes: `BadNode`, by `check()` only, when one is not what
 * it must be; `BadKey` also when a majority bears another kind of value under the key.
 */
export class LockConfigError extends Error {
  readonly code: LockConfigCode;
  readonly field: string;
  /** What each node said, where nodes were asked. */
  readonly perNode: readonly NodeVerdict[];

  constructor(
    code: LockConfigCode,
    field: string,
    message: string,
    perNode: readonly NodeVerdict[] = [],
  ) {
    super(`${field}: ${message}`);
    this.name = "LockConfigError";
    this.code = code;
    this.field = field;
    this.perNode = perNode;
  }
}

/** One line per node for a message. */
function nodesInWords(perNode: readonly NodeVerdict[]): string {
  return perNode
    .map((verdict) => {
      const reason = "reason" in verdict ? ` (${verdict.reason})` : "";
      return `${verdict.node} ${verdict.outcome}${reason}`;
    })
    .join(", ");
}

/**
 * `held`: somebody else has it (or the votes were split) until the wait was over. `noQuorum`: fewer than a majority of
 * the nodes could vote. `unsafe`: they could, if their configuration were mended. `aborted`: by the caller's signal.
 */
export type NotAcquiredReason = "held" | "noQuorum" | "unsafe" | "aborted";

/** The lock was not acquired, and nothing of the attempt is left. */
export class NotAcquiredError extends Error {
  readonly reason: NotAcquiredReason;
  readonly key: string;
  /** who has it, when a majority agrees */
  readonly holder: Holder | null;
  /** of the last try */
  readonly perNode: readonly NodeVerdict[];
  readonly waitedMs: number;
  readonly tries: number;

  constructor(
    reason: NotAcquiredReason,
    about: {
      readonly key: string;
      readonly holder: Holder | null;
      readonly perNode: readonly NodeVerdict[];
      readonly waitedMs: number;
      readonly tries: number;
      readonly cause?: unknown;
    },
  ) {
    const words = {
      held: about.holder === null ? "the votes are split" : `held by ${about.holder.value}`,
      noQuorum: "too few nodes answered",
      unsafe: "too few nodes are safe to rely on",
      aborted: "aborted by the caller",
    }[reason];
    super(
      `lock "${about.key}" not acquired: ${words} (${about.tries} tries in ${Math.round(about.waitedMs)} ms; ` +
        `${nodesInWords(about.perNode)})`,
      { cause: about.cause },
    );
    this.name = "NotAcquiredError";
    this.reason = reason;
    this.key = about.key;
    this.holder = about.holder;
    this.perNode = about.perNode;
    this.waitedMs = about.waitedMs;
    this.tries = about.tries;
  }
}

/**
 * `deadline`: no renewal succeeded in time. `taken`: a majority answered that our value is not there. `maxHold`: held
 * for as long as was allowed. `released`: it had been given back before.
 */
export type LockLostReason = "deadline" | "taken" | "maxHold" | "released";

/** The lock is not held (any more). Terminal: acquire it anew, and check what was done meanwhile. */
export class LockLostError extends Error {
  readonly reason: LockLostReason;
  readonly keys: readonly string[];
  /** of the last renewal, if there was one */
  readonly perNode: readonly NodeVerdict[];

  constructor(
    reason: LockLostReason,
    keys: readonly string[],
    perNode: readonly NodeVerdict[] = [],
  ) {
    const words = {
      deadline: "its lease ran out before a majority renewed it",
      taken: "a majority of the nodes does not have it any more",
      maxHold: "it was held for as long as it may be",
      released: "it was released before",
    }[reason];
    const nodes = perNode.length === 0 ? "" : ` (${nodesInWords(perNode)})`;
    super(`lock ${keys.map((key) => `"${key}"`).join(", ")} is not held: ${words}${nodes}`);
    this.name = "LockLostError";
    this.reason = reason;
    this.keys = keys;
    this.perNode = perNode;
  }
}
