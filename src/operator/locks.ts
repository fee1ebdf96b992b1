/** Redis as the controller sees it. */
import { readFileSync } from "node:fs";
import type { Config } from "../config.ts";
import type { Locks } from "../controller/ports.ts";
import { createQuorumLock, type LockObserver, type QuorumLock } from "../lock/index.ts";
import type { Logger, Metrics } from "../telemetry/index.ts";

export function createLock(config: Config, log: Logger, metrics: Metrics): QuorumLock {
  return openLock(config, {
    nodeReply: ({ node, rttMs }) => metrics.redisRtt({ node, seconds: rttMs / 1000 }),
    warning: ({ code, message }) => log.warn(message, { event: code }),
  });
}

/** The lock that a configuration describes. */
export function openLock(config: Config, observer: LockObserver = {}): QuorumLock {
  return createQuorumLock({
    clientName: "lockedcron",
    nodes: config.redis.map((node) => ({
      ...node,
      ...(node.url.startsWith("rediss:") && { tls: tlsOf(config) }),
    })),
    observer,
  });
}

/** Read once: whoever changes these files restarts the replicas. */
function tlsOf({ redisCaFile, redisCertFile, redisKeyFile }: Config) {
  const read = (file: string): string => readFileSync(file, "utf8");
  return {
    ...(redisCaFile !== undefined && { ca: read(redisCaFile) }),
    ...(redisCertFile !== undefined && { cert: read(redisCertFile) }),
    ...(redisKeyFile !== undefined && { key: read(redisKeyFile) }),
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
