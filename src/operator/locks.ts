/** Redis as the controller sees it. */
import { readFileSync } from "node:fs";
import type { Config, RedisNode, TlsFiles } from "../config.ts";
import type { Locks } from "../controller/ports.ts";
import {
  createQuorumLock,
  type LockHealth,
  type LockObserver,
  type QuorumLock,
  type QuorumLockOptions,
} from "../lock/index.ts";
import type { Logger, Metrics } from "../telemetry/index.ts";

/**
 * The default of spec.lock.leaseSeconds, ms. Longer ones are learned when they are first used; that a node which lost
 * them before is asked too early is harmless here, since the ledger has the last word.
 */
const USUAL_LEASE_MS = 30_000;

export function createLock(config: Config, log: Logger, metrics: Metrics): QuorumLock {
  return openLock(config, {
    ...observerOf(metrics),
    warning: ({ code, message }) => log.warn(message, { event: code }),
  });
}

/** The lock that a configuration describes. */
export function openLock(config: Config, observer: LockObserver = {}): QuorumLock {
  return createQuorumLock({
    clientName: "lockedcron",
    nodes: config.redis.map(nodeOf),
    ...(config.redisPrevious !== undefined && {
      previousNodes: config.redisPrevious.map(nodeOf),
    }),
    maxLeaseMs: USUAL_LEASE_MS,
    // A fresh installation elects at once; after a loss of all data the ledger still lets only one through.
    trustNewList: true,
    observer,
  });
}

function observerOf(metrics: Metrics): LockObserver {
  return {
    nodeReply: ({ node, rttMs }) => metrics.redisRtt({ node, seconds: rttMs / 1000 }),
    attempt({ operation, outcome, durationMs, perNode }) {
      metrics.lockOperation({ operation, outcome, seconds: durationMs / 1000 });
      for (const verdict of perNode) {
        // Not needed any more is no failure.
        if ("reason" in verdict && verdict.reason !== "PENDING") {
          metrics.lockNodeFailure({ node: verdict.node, reason: verdict.reason });
        } else if (verdict.outcome === "quarantined") {
          metrics.lockNodeFailure({ node: verdict.node, reason: "QUARANTINED" });
        }
      }
    },
    waited: ({ outcome, waitMs }) => metrics.lockWait({ outcome, seconds: waitMs / 1000 }),
    held: ({ end, holdMs, shareOfLease }) =>
      metrics.lockHold({ end, seconds: holdMs / 1000, shareOfLease }),
  };
}

/** What INFO and TIME of each node said last. */
export function reportNodes(state: LockHealth, metrics: Metrics): void {
  for (const { node, facts } of state.nodes) {
    if (facts === undefined) continue;
    metrics.redisFacts({
      node,
      cpuSeconds: facts.cpuSeconds,
      memoryBytes: facts.usedMemoryBytes,
      uptimeSeconds: facts.uptimeSeconds,
      clockOffsetSeconds:
        facts.clockOffsetMs === undefined ? undefined : facts.clockOffsetMs / 1000,
    });
  }
}

function nodeOf(node: RedisNode): QuorumLockOptions["nodes"][number] {
  if ("url" in node) {
    const { tls, ...rest } = node;
    return { ...rest, ...(tls !== undefined && { tls: tlsOf(tls) }) };
  }
  const { tls, sentinelTls, ...rest } = node;
  return {
    ...rest,
    ...(tls !== undefined && { tls: tlsOf(tls) }),
    ...(sentinelTls !== undefined && { sentinelTls: tlsOf(sentinelTls) }),
  };
}

/** Read once: whoever changes these files restarts the replicas. */
function tlsOf({ caFile, certFile, keyFile, serverName }: TlsFiles) {
  const read = (file: string): string => readFileSync(file, "utf8");
  return {
    ...(caFile !== undefined && { ca: read(caFile) }),
    ...(certFile !== undefined && { cert: read(certFile) }),
    ...(keyFile !== undefined && { key: read(keyFile) }),
    ...(serverName !== undefined && { servername: serverName }),
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
