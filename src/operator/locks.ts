/** Redis as the controller sees it. */
import type { Config } from "../config.ts";
import type { Locks } from "../controller/ports.ts";
import type { LockBackend } from "../domain/status.ts";
import { createQuorumLock, type LockHealth, type QuorumLock } from "../lock/index.ts";
import type { Logger, Metrics } from "../telemetry/index.ts";

export function createLock(config: Config, log: Logger, metrics: Metrics): QuorumLock {
  return createQuorumLock({
    clientName: "lockedcron",
    nodes: config.redis,
    observer: {
      nodeReply: ({ node, rttMs }) => metrics.redisRtt({ node, seconds: rttMs / 1000 }),
      warning: ({ code, message }) => log.warn(message, { event: code }),
    },
  });
}

export function backendOf(state: LockHealth): LockBackend {
  return {
    quorum: state.quorum,
    message: state.quorum
      ? `a majority of the ${state.nodes.length} Redis nodes is reachable`
      : `fewer than ${state.needed} of ${state.nodes.length} Redis nodes are reachable`,
  };
}

/** The quorum lock in the controller's words. */
export function locksOf(lock: QuorumLock): Locks {
  return {
    async tryAcquire(key, value, leaseMs) {
      const result = await lock.tryAcquire(key, value, leaseMs);
      if (result.outcome === "acquired") {
        return { outcome: "won", isValid: () => result.grant.isValid() };
      }
      return { outcome: result.outcome, isValid: () => false };
    },
    async extendMany(entries) {
      return (await lock.extendMany(entries)).map((result) => result.outcome);
    },
    release: (key, value, leaseMs) => lock.release(key, value, leaseMs),
  };
}
