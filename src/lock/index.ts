/**
 * A lock on a majority of independent Redis masters, usable alone.
 *
 * @example
 * const lock = createQuorumLock({ nodes: ["redis://r1:6379", "redis://r2:6379", "redis://r3:6379"] });
 * const value = crypto.randomUUID();
 * const result = await lock.tryAcquire("nightly", value, 10_000);
 * if (result.outcome === "acquired") {
 *   // … while result.grant.isValid() …
 *   await lock.release("nightly", value);
 * }
 * await lock.close();
 */
import { createQuorumLock, type QuorumLock as QuorumLockType } from "./quorum-lock.ts";

export { createQuorumLock };
export type QuorumLock = QuorumLockType;
export const QuorumLock = { create: createQuorumLock } as const;

export {
  LockConfigError,
  LockLostError,
  NotAcquiredError,
  type LockConfigCode,
  type LockLostReason,
  type NotAcquiredReason,
} from "./errors.ts";
export type { FencingSource } from "./hold/fencing.ts";
export type { LockHandle } from "./hold/handle.ts";
export { DEFAULT_LEASE_MS, type AcquireOptions, type Locker } from "./hold/locker.ts";
export { describeHealth } from "./health.ts";
export { MAX_LEASE_MS, MIN_LEASE_MS } from "./options.ts";
export { redactUrl } from "./urls.ts";
export { quorumOf } from "./quorum.ts";
export { driftOf, elapsedSince, type Grant } from "./validity.ts";
export type * from "./types.ts";
