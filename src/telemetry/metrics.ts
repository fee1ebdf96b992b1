import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { createLabelGuard } from "./labels.ts";

/**
 * Every metric of the product, as plain functions that may be passed on as hooks. Durations are in
 * seconds. Labels are bounded: no names of LockedCronJobs, no free text.
 */
export interface Metrics {
  /** `latencySeconds`: tick until the API server confirmed the Job; `rank`: ours for this key. */
  readonly tickLaunched: (o: { latencySeconds: number; rank?: number }) => void;
  readonly tickMissed: (o: { reason: string; count?: number }) => void;
  readonly election: (o: { outcome: string; seconds: number }) => void;
  readonly claimConflict: () => void;
  readonly takeover: () => void;
  readonly jobCreate: (o: { outcome: string }) => void;
  /** From the claim of a run with mutexes until it has them all, or gives up. */
  readonly mutexWait: (o: { outcome: string; seconds: number }) => void;
  readonly mutexBusy: () => void;
  readonly lockTakenOver: () => void;
  readonly lockHeld: (o: { seconds: number }) => void;
  readonly lockRenewal: (o: { outcome: string; count?: number }) => void;
  readonly runsActive: (n: number) => void;
  readonly lockedCronJobs: (n: number) => void;
  readonly clockSkew: (seconds: number) => void;
  readonly replicasLive: (n: number) => void;
  readonly queueDepth: (n: number) => void;
  readonly queueAdd: () => void;
  readonly queueRetry: () => void;
  /** One reconcile: how it ended and how long it took. */
  readonly queueDone: (o: { outcome: string; seconds: number }) => void;
  /** `code`: the HTTP status, or a word where there was none ("timeout", "network", "aborted"). */
  readonly kubeRequest: (o: {
    verb: string;
    resource: string;
    code: number | string;
    seconds: number;
  }) => void;
  readonly watchRestart: (o: { resource: string; reason: string }) => void;
  /** `node`: the name of the node in the configuration, which has no credentials in it. */
  readonly redisNodeUp: (o: { node: string; up: boolean }) => void;
  readonly redisRtt: (o: { node: string; seconds: number }) => void;
  /** From INFO and TIME of a node. `clockOffsetSeconds`: its wall clock less ours. */
  readonly redisFacts: (o: {
    node: string;
    cpuSeconds: number;
    memoryBytes: number;
    uptimeSeconds: number;
    clockOffsetSeconds: number | undefined;
  }) => void;
  /** One call of the quorum lock: `acquire`, `extend` (a renewal) or `release`, and how it ended. */
  readonly lockOperation: (o: { operation: string; outcome: string; seconds: number }) => void;
  /** A node had no say in such a call, and why. */
  readonly lockNodeFailure: (o: { node: string; reason: string }) => void;
  /** An acquisition with its waiting has ended; failed ones too. */
  readonly lockWait: (o: { outcome: string; seconds: number }) => void;
  /** A lock has been given back or lost (`end`). `shareOfLease`: held for so much of its lease. */
  readonly lockHold: (o: { end: string; seconds: number; shareOfLease: number }) => void;
  /** Everything in the text format of Prometheus. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  version?: string;
  /** Release of the tz database that schedules are read with. */
  tzdata?: string;
  /** CPU, memory, garbage collection and event-loop lag of this process (`process_*`, `nodejs_*`). */
  processMetrics?: boolean;
}

/** A row of docs/metrics.md. */
export interface MetricRow {
  name: string;
  type: string;
  labels: readonly string[];
  help: string;
}

const PREFIX = "lockedcron_";

// From 5 ms (a launch costs about that much) past the budget of 25 ms to a tick that is minutes late.
const TICK_LATENCY = [0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const NETWORK = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const HOLD = [0.01, 0.1, 1, 10, 60, 600, 3_600, 21_600, 86_400];
const SHARES = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 2, 10, 100];
const WAITS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900, 3_600, 14_400];
const RANKS = [0, 1, 2, 3, 5, 8];

function define(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name: PREFIX + name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name: PREFIX + name, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    buckets: number[],
    help: string,
    labelNames: L[] = [],
  ) => new Histogram({ name: PREFIX + name, help, buckets, labelNames, registers });

  return {
    buildInfo: gauge("build_info", "Always 1; the version is in the label.", ["version"]),
    tzdataInfo: gauge(
      "tzdata_info",
      "Always 1; the release of the tz database is in the label. All replicas should have the same.",
      ["version"],
    ),
    launched: counter("ticks_launched_total", "Ticks whose Job this replica created."),
    missed: counter(
      "ticks_missed_total",
      "Ticks that passed without a Job, by reason; JobAlreadyActive and QueueFull are the concurrency policy's.",
      ["reason"],
    ),
    latency: histogram("tick_latency_seconds", TICK_LATENCY, "From the tick until its Job exists."),
    rank: histogram("launch_rank", RANKS, "Rank of this replica for the ticks it launched."),
    election: histogram("election_seconds", NETWORK, "Elections by Redlock, by outcome.", [
      "outcome",
    ]),
    conflicts: counter("claim_conflicts_total", "Claims lost to another writer of the ledger."),
    takeovers: counter("takeovers_total", "Claims of other replicas that this one carried on."),
    jobCreate: counter("job_create_total", "Attempts to create a Job, by outcome.", ["outcome"]),
    mutexWait: histogram("mutex_wait_seconds", WAITS, "Waits for mutexes, by outcome.", [
      "outcome",
    ]),
    mutexBusy: counter("mutex_busy_total", "Ticks that were kept waiting by a mutex."),
    lockTakenOver: counter(
      "lock_takeovers_total",
      "Runs whose lock this replica keeps in place of one that is gone.",
    ),
    lockHeld: histogram("run_lock_hold_seconds", WAITS, "How long runs that ended were locked."),
    renewals: counter("lock_renewals_total", "Renewals of run locks, by outcome.", ["outcome"]),
    runs: gauge("runs_active", "Runs whose lock this replica keeps."),
    lockedCronJobs: gauge("lockedcronjobs", "LockedCronJobs that this replica knows."),
    clockSkew: gauge(
      "clock_skew_seconds",
      "How far this clock is proven to be ahead (or, below 0, behind) of the API server's.",
    ),
    replicas: gauge("replicas_live", "Replicas with a valid membership Lease."),
    depth: gauge("workqueue_depth", "Keys that wait for a worker."),
    adds: counter(
      "workqueue_adds_total",
      "Keys added to the work queue, also those that waited in it already.",
    ),
    retries: counter("workqueue_retries_total", "Keys queued again after an error."),
    work: histogram("workqueue_work_seconds", NETWORK, "Reconciles, by outcome.", ["outcome"]),
    requests: counter("kube_requests_total", "Requests to the API server.", [
      "verb",
      "resource",
      "code",
    ]),
    requestTime: histogram("kube_request_seconds", NETWORK, "Requests to the API server.", [
      "verb",
      "resource",
    ]),
    watchRestarts: counter("watch_restarts_total", "Watches that had to start again, by reason.", [
      "resource",
      "reason",
    ]),
    nodeUp: gauge("redis_node_up", "1 while the Redis node answers, else 0.", ["node"]),
    rtt: histogram("redis_rtt_seconds", NETWORK, "Round trips to a Redis node.", ["node"]),
    nodeCpu: gauge("redis_node_cpu_seconds", "CPU time of the Redis process.", ["node"]),
    nodeMemory: gauge("redis_node_memory_bytes", "Memory that the Redis node uses.", ["node"]),
    nodeUptime: gauge("redis_node_uptime_seconds", "Since the Redis process started.", ["node"]),
    nodeClock: gauge(
      "redis_node_clock_offset_seconds",
      "Wall clock of the Redis node less that of this replica.",
      ["node"],
    ),
    lockTime: histogram(
      "lock_operation_seconds",
      NETWORK,
      "Calls of the quorum lock (acquire, extend, release), by outcome.",
      ["operation", "outcome"],
    ),
    lockFailures: counter(
      "lock_node_failures_total",
      "Calls of the quorum lock in which a Redis node had no say, by reason.",
      ["node", "reason"],
    ),
    lockWait: histogram("lock_wait_seconds", NETWORK, "Waiting for a lock, by outcome.", [
      "outcome",
    ]),
    lockHold: histogram("lock_hold_seconds", HOLD, "From acquired to given back or lost.", ["end"]),
    lockShare: histogram("lock_hold_lease_ratio", SHARES, "Time held as a share of the lease.", [
      "end",
    ]),
  };
}

/** The metrics in a registry of their own, so that two operators in one process do not clash. */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  const m = define(registry);
  const label = createLabelGuard();
  if (options.processMetrics ?? true) {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
  }
  m.buildInfo.set({ version: label("version", options.version ?? "unknown") }, 1);
  m.tzdataInfo.set({ version: label("version", options.tzdata ?? "unknown") }, 1);

  return {
    tickLaunched({ latencySeconds, rank }) {
      m.launched.inc();
      m.latency.observe(latencySeconds);
      if (rank !== undefined) m.rank.observe(rank);
    },
    tickMissed: ({ reason, count }) => m.missed.inc({ reason: label("reason", reason) }, count),
    election: ({ outcome, seconds }) =>
      m.election.observe({ outcome: label("outcome", outcome) }, seconds),
    claimConflict: () => m.conflicts.inc(),
    takeover: () => m.takeovers.inc(),
    jobCreate: ({ outcome }) => m.jobCreate.inc({ outcome: label("outcome", outcome) }),
    mutexWait: ({ outcome, seconds }) =>
      m.mutexWait.observe({ outcome: label("outcome", outcome) }, seconds),
    mutexBusy: () => m.mutexBusy.inc(),
    lockTakenOver: () => m.lockTakenOver.inc(),
    lockHeld: ({ seconds }) => m.lockHeld.observe(seconds),
    lockRenewal: ({ outcome, count }) =>
      m.renewals.inc({ outcome: label("outcome", outcome) }, count),
    runsActive: (n) => m.runs.set(n),
    lockedCronJobs: (n) => m.lockedCronJobs.set(n),
    clockSkew: (seconds) => m.clockSkew.set(seconds),
    replicasLive: (n) => m.replicas.set(n),
    queueDepth: (n) => m.depth.set(n),
    queueAdd: () => m.adds.inc(),
    queueRetry: () => m.retries.inc(),
    queueDone: ({ outcome, seconds }) =>
      m.work.observe({ outcome: label("outcome", outcome) }, seconds),
    kubeRequest({ verb, resource, code, seconds }) {
      const target = { verb: label("verb", verb), resource: label("resource", resource) };
      m.requests.inc({ ...target, code: label("code", String(code)) });
      m.requestTime.observe(target, seconds);
    },
    watchRestart: ({ resource, reason }) =>
      m.watchRestarts.inc({
        resource: label("resource", resource),
        reason: label("reason", reason),
      }),
    redisNodeUp: ({ node, up }) => m.nodeUp.set({ node: label("node", node) }, up ? 1 : 0),
    redisRtt: ({ node, seconds }) => m.rtt.observe({ node: label("node", node) }, seconds),
    redisFacts({ node, cpuSeconds, memoryBytes, uptimeSeconds, clockOffsetSeconds }) {
      const of = { node: label("node", node) };
      m.nodeCpu.set(of, cpuSeconds);
      m.nodeMemory.set(of, memoryBytes);
      m.nodeUptime.set(of, uptimeSeconds);
      if (clockOffsetSeconds !== undefined) m.nodeClock.set(of, clockOffsetSeconds);
    },
    lockOperation({ operation, outcome, seconds }) {
      const of = { operation: label("operation", operation), outcome: label("outcome", outcome) };
      m.lockTime.observe(of, seconds);
    },
    lockNodeFailure: ({ node, reason }) =>
      m.lockFailures.inc({ node: label("node", node), reason: label("reason", reason) }),
    lockWait: ({ outcome, seconds }) =>
      m.lockWait.observe({ outcome: label("outcome", outcome) }, seconds),
    lockHold({ end, seconds, shareOfLease }) {
      m.lockHold.observe({ end: label("end", end) }, seconds);
      m.lockShare.observe({ end: label("end", end) }, shareOfLease);
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

/** What docs/metrics.md is generated from. */
export function metricRows(): MetricRow[] {
  return Object.values(define(new Registry())).map((metric) => {
    const type = metric.constructor.name.toLowerCase();
    const { name, help, labelNames } = metric as unknown as Omit<MetricRow, "labels"> & {
      labelNames: string[];
    };
    return { name, type, labels: labelNames, help };
  });
}
