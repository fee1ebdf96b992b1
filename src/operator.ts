/**
 * One replica of the operator: the API server, Redis, telemetry and the controller, wired together. Nothing here
 * decides anything.
 */
import { randomBytes } from "node:crypto";
import { systemClock, systemTimers } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Controller } from "./controller/controller-options.ts";
import { createController } from "./controller/controller.ts";
import type { StepHook } from "./controller/ports.ts";
import { createSkewMeter } from "./controller/skew.ts";
import { tzdataVersion } from "./domain/schedule/index.ts";
import {
  createEventRecorder,
  createKubeClient,
  isKubeError,
  loadKubeConfig,
  namespaces,
  type KubeClient,
} from "./kube/index.ts";
import { createBackend } from "./operator/backend.ts";
import {
  createClockReport,
  createObserver,
  createStatusReport,
  eventsAtLevel,
  onMembership,
  onMembershipTrouble,
  onSuperseded,
  onWatchHealth,
} from "./operator/reports.ts";
import { createTroubles, type Troubles } from "./operator/troubles.ts";
import type { Health, Logger, Metrics } from "./telemetry/index.ts";

export interface OperatorOptions {
  config: Config;
  log: Logger;
  metrics: Metrics;
  health: Health;
  /** Another process runs under the same replica name; this one is to end. */
  onSuperseded: () => void;
  /**
   * Seams for tests: what to do at a step of the protocol, a client that loses answers, and a shorter wait for requests
   * of the dead (ControllerOptions.requestBoundMs).
   */
  onStep?: StepHook;
  wrapClient?: (client: KubeClient) => KubeClient;
  requestBoundMs?: number;
}

export interface Operator {
  /** Resolves when ticks are being taken; rejects only when the signal aborts first. */
  start(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** How often gauges are set and slow checks are made, ms. */
const GAUGE_MS = 1_000;
/** A pulse that is this late means that the event loop hangs, ms. */
const PULSE_DEAD_MS = 15_000;
const LOOKUP_RETRY_MS = 1_000;

export function createOperator(o: OperatorOptions): Operator {
  const { config, log, metrics, health } = o;
  const clock = systemClock;
  const timers = systemTimers;
  // ORDER: the nonce makes the process unique before it writes anything; a restarted replica is another process.
  const process = `${config.replica}/${randomBytes(6).toString("hex")}`;
  const skew = createSkewMeter(clock);
  const plain = createKubeClient({
    config: () => loadKubeConfig({ file: config.kubeconfig, context: config.context }),
    userAgent: "lockedcron",
    timeoutMs: config.kubeTimeoutMs,
    onCall: (call) =>
      metrics.kubeRequest({
        verb: call.verb,
        resource: call.resource,
        code: call.result,
        seconds: call.ms / 1000,
      }),
    onServerTime: skew.observe,
  });
  const client = o.wrapClient?.(plain) ?? plain;
  const events = createEventRecorder({
    client,
    component: "lockedcron",
    instance: config.replica,
    busy: () => controller?.busy() ?? false,
    onDropped: (reason, message) => log.warn("event not written", { reason, dropped: message }),
  });
  const backend = createBackend(config, { log, metrics, health });
  const troubles = createTroubles(health);
  let controller: Controller | undefined;
  let gauges: NodeJS.Timeout | undefined;

  async function start(signal: AbortSignal): Promise<void> {
    const unsubscribe = backend.report(() => controller?.lockBackendChanged());
    signal.addEventListener("abort", unsubscribe, { once: true });
    const cluster = config.clusterId ?? (await clusterId(client, troubles, log, signal));
    controller = createController({
      client,
      clock,
      timers,
      events: eventsAtLevel(events, config.logLevel),
      process,
      locks: backend.locks,
      lockBackend: backend.state,
      observe: createObserver(log, metrics, troubles),
      random: Math.random,
      clockSkewMs: skew.skewMs,
      replica: config.replica,
      podName: config.podName,
      namespace: config.namespace,
      watchNamespaces: config.watchNamespaces,
      sharedMutexNamespaces: config.sharedMutexNamespaces,
      lockPrefix: `${config.lockPrefix}:${cluster}`,
      workers: config.workers,
      rankDelayMs: config.rankDelayMs,
      electionLeaseMs: config.electionLeaseMs,
      takeOverAfterMs: config.takeOverAfterMs,
      membershipLeaseSeconds: config.membershipLeaseSeconds,
      hooks: {
        watchHealth: (h, watch) => onWatchHealth(h, watch, troubles, metrics, log),
        superseded: (by) => {
          onSuperseded(by, config.replica, health, log);
          o.onSuperseded();
        },
        membershipHealth: (trouble) => onMembership(trouble, health, log),
        membershipTrouble: onMembershipTrouble(log),
        queueAdd: metrics.queueAdd,
        queueOutcome: (outcome, seconds) => {
          metrics.queueDone({ outcome: outcome.kind, seconds });
          if (outcome.kind === "retry") metrics.queueRetry();
        },
        onLostFailed: (key, error) =>
          log.error("lock.onLost could not be carried out", {
            event: "OnLostTrouble",
            key,
            error,
            next: "suspend or delete the Job by hand",
          }),
        statusFailed: createStatusReport(log, clock),
        queueStuck: (key, ms) =>
          log.warn("a reconcile hangs", { event: "ReconcileStuck", key, seconds: ms / 1000 }),
      },
      ...(o.onStep === undefined ? {} : { onStep: o.onStep }),
      ...(o.requestBoundMs === undefined ? {} : { requestBoundMs: o.requestBoundMs }),
    });
    gauges = setInterval(setGauges, GAUGE_MS);
    await controller.start(signal);
    health.set("caches-synced", { ok: true });
    troubles.checked("api-server", "crd", "rbac");
    const running = controller;
    health.watch("pulse", "livez", () => {
      const late = clock.now() - running.stats().pulseAt;
      return { ok: late < PULSE_DEAD_MS, reason: `last pulse ${Math.round(late)} ms ago` };
    });
    log.info("taking ticks", {
      event: "Started",
      process,
      tzdata: tzdataVersion,
      ...running.stats(),
    });
  }

  const clockReport = createClockReport(skew, health, metrics, log);

  function setGauges(): void {
    clockReport();
    const stats = controller?.stats();
    if (stats === undefined) return;
    metrics.lockedCronJobs(stats.lockedCronJobs);
    metrics.queueDepth(stats.queued);
    metrics.replicasLive(stats.replicas);
    metrics.runsActive(stats.locksHeld);
  }

  async function stop(): Promise<void> {
    health.set("shutdown", { ok: false, reason: "shutting down" });
    health.remove("pulse");
    log.info("shutting down", { event: "Stopping", next: "finishing what is in flight" });
    clearInterval(gauges);
    const graceMs = config.shutdownGraceSeconds * 1000;
    const left = (await controller?.stop(graceMs)) ?? { unfinished: [] };
    await events.flush(2_000);
    await events[Symbol.asyncDispose]();
    await backend.close();
    await client[Symbol.asyncDispose]();
    const handedOver = left.unfinished.length;
    log.info("stopped", { event: "Stopped", handedOver });
  }

  return { start, stop };
}

/** Clusters that share a Redis are told apart by the uid of their kube-system. Without an API server: waits for it. */
async function clusterId(
  client: KubeClient,
  troubles: Troubles,
  log: Logger,
  signal: AbortSignal,
): Promise<string> {
  let said = "";
  for (;;) {
    signal.throwIfAborted();
    try {
      const namespace = await client.get(namespaces, { name: "kube-system" }, { signal });
      troubles.clear("cluster id");
      troubles.checked("api-server");
      return namespace.metadata.uid ?? "unknown";
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      const forbidden = isKubeError(error) && error.reason === "Forbidden";
      troubles.set("cluster id", forbidden ? "rbac" : "api-server", reason);
      if (forbidden) troubles.checked("api-server");
      if (said !== reason)
        log.warn("the API server cannot be asked for the cluster's id", {
          event: "ApiServerTrouble",
          reason,
          next: "trying again; --cluster-id makes the question needless",
        });
      said = reason;
      await new Promise((resolve) => setTimeout(resolve, LOOKUP_RETRY_MS));
    }
  }
}
