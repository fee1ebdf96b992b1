/** What elects a replica for a tick before the ledger decides: a majority of Redis masters, or nothing. */
import type { Config } from "../config.ts";
import type { Locks } from "../controller/ports.ts";
import type { LockBackend } from "../domain/conditions.ts";
import { describeHealth, type LockHealth } from "../lock/index.ts";
import type { Health, Logger, Metrics } from "../telemetry/index.ts";
import { createLock, locksOf, reportNodes } from "./locks.ts";

export interface Backend {
  readonly locks: Locks;
  /** As the conditions of LockedCronJobs tell it. */
  state(): LockBackend;
  /** Begins to report in readiness, metrics and log; `changed` is called when `state` did. @returns how to stop that */
  report(changed: () => void): () => void;
  close(): Promise<void>;
}

export interface Telemetry {
  log: Logger;
  metrics: Metrics;
  health: Health;
}

/** How often the gauges of the nodes are set; what they tell is read every ten seconds. */
const GAUGE_MS = 5_000;

export function createBackend(config: Config, telemetry: Telemetry): Backend {
  return config.lockBackend === "kubernetes"
    ? ledgerBackend(telemetry)
    : redisBackend(config, telemetry);
}

const LEDGER_ALONE = "the claim in the ledger alone elects (--lock-backend kubernetes)";

/**
 * Every replica that tries is elected, and the compare-and-set of the claim lets one of them through. Ranks keep the
 * others from trying, mostly: what they lack is the head start that a lost election gives, not safety.
 */
function ledgerBackend({ health }: Telemetry): Backend {
  return {
    locks: {
      tryAcquire: () => Promise.resolve({ outcome: "won", isValid: () => true }),
      extendMany: (entries) => Promise.resolve(entries.map(() => "renewed" as const)),
      release: () => Promise.resolve(),
    },
    state: () => ({ quorum: true, message: LEDGER_ALONE }),
    report() {
      health.set("redis-quorum", { ok: true, reason: `not needed: ${LEDGER_ALONE}` });
      return () => {};
    },
    close: () => Promise.resolve(),
  };
}

function redisBackend(config: Config, { log, metrics, health }: Telemetry): Backend {
  const lock = createLock(config, log, metrics);
  let said = "";

  function onHealth(state: LockHealth, changed: () => void): void {
    health.set("redis-quorum", { ok: state.quorum, reason: describeHealth(state) });
    for (const node of state.nodes) {
      metrics.redisNodeUp({ node: node.node, up: node.state === "up" });
    }
    const summary = [
      state.quorum,
      ...state.nodes.map((n) => `${n.state} ${n.reason ?? ""} ${n.concern?.reason ?? ""}`),
    ].join();
    // While a node is being connected to there is nothing to report: it is up or down in a moment.
    if (summary === said || state.nodes.some((n) => n.state === "connecting")) return;
    said = summary;
    const fields = { event: "RedisHealth", reason: describeHealth(state) };
    if (state.quorum) log.info("Redis majority reachable", fields);
    else log.warn("no Redis majority", { ...fields, next: "lock.onQuorumLoss decides each tick" });
    changed();
  }

  return {
    locks: locksOf(lock),
    state() {
      const { quorum, needed, nodes } = lock.health();
      const message = quorum
        ? `a majority of the ${nodes.length} Redis nodes is reachable`
        : `fewer than ${needed} of ${nodes.length} Redis nodes are reachable`;
      return { quorum, message };
    },
    report(changed) {
      const unsubscribe = lock.onHealth((state) => onHealth(state, changed));
      onHealth(lock.health(), changed);
      const gauges = setInterval(() => reportNodes(lock.health(), metrics), GAUGE_MS);
      return () => {
        clearInterval(gauges);
        unsubscribe();
      };
    },
    close: () => lock.close(),
  };
}
