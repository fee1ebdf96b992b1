import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createMetrics, metricRows } from "../../src/telemetry/metrics.ts";
import type { Metrics } from "../../src/telemetry/metrics.ts";

/** The samples of the exposition text: `name{labels}` → value. */
async function samples(metrics: Metrics): Promise<Record<string, number>> {
  const lines = (await metrics.text()).split("\n").filter((line) => /^[a-z]/.test(line));
  return Object.fromEntries(
    lines.map((line) => {
      const cut = line.lastIndexOf(" ");
      return [line.slice(0, cut), Number(line.slice(cut + 1))];
    }),
  );
}

const SRC = join(import.meta.dirname, "../../src");

const quiet = (): Metrics => createMetrics({ processMetrics: false, version: "1.2.3" });

const FACTS = {
  node: "0/a:1",
  cpuSeconds: 2,
  memoryBytes: 3,
  uptimeSeconds: 4,
  clockOffsetSeconds: -5,
};
const nodeMetric = (what: string) => `lockedcron_redis_node_${what}{node="0/a:1"}`;

it("every hook is called by the operator, or its metric would stand still", () => {
  const hooks = Object.entries(quiet()).flatMap(([name, hook]) =>
    typeof hook === "function" && name !== "text" ? [name] : [],
  );
  const texts = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("telemetry"))
    .map((file) => readFileSync(join(SRC, file), "utf8"));
  const isCalled = (hook: string): boolean =>
    texts.some((text) => new RegExp(`[mM]etrics\\.${hook}\\b`).test(text));
  expect(hooks.length).toBeGreaterThan(20);
  expect(hooks.filter((hook) => !isCalled(hook))).toEqual([]);
});

describe("each hook moves its metric", () => {
  const cases: Record<string, [call: (m: Metrics) => void, name: string, want: number]> = {
    "a launched tick": [
      (m) => m.tickLaunched({ latencySeconds: 0.012, rank: 1 }),
      "lockedcron_ticks_launched_total",
      1,
    ],
    "its latency, in the bucket it belongs to": [
      (m) => m.tickLaunched({ latencySeconds: 0.012 }),
      'lockedcron_tick_latency_seconds_bucket{le="0.015"}',
      1,
    ],
    "its latency, not in the bucket below": [
      (m) => m.tickLaunched({ latencySeconds: 0.012 }),
      'lockedcron_tick_latency_seconds_bucket{le="0.01"}',
      0,
    ],
    "the rank of the launching replica": [
      (m) => m.tickLaunched({ latencySeconds: 0, rank: 1 }),
      'lockedcron_launch_rank_bucket{le="0"}',
      0,
    ],
    "missed ticks, many at once": [
      (m) => m.tickMissed({ reason: "TooLate", count: 7 }),
      'lockedcron_ticks_missed_total{reason="TooLate"}',
      7,
    ],
    "an election": [
      (m) => m.election({ outcome: "won", seconds: 0.002 }),
      'lockedcron_election_seconds_sum{outcome="won"}',
      0.002,
    ],
    "a claim conflict": [(m) => m.claimConflict(), "lockedcron_claim_conflicts_total", 1],
    "a take-over": [(m) => m.takeover(), "lockedcron_takeovers_total", 1],
    "a Job create": [
      (m) => m.jobCreate({ outcome: "exists" }),
      'lockedcron_job_create_total{outcome="exists"}',
      1,
    ],
    "a batch of renewals": [
      (m) => m.lockRenewal({ outcome: "renewed", count: 3 }),
      'lockedcron_lock_renewals_total{outcome="renewed"}',
      3,
    ],
    "a lock that was taken over": [(m) => m.lockTakenOver(), "lockedcron_lock_takeovers_total", 1],
    "how long a run was locked": [
      (m) => m.lockHeld({ seconds: 12 }),
      "lockedcron_run_lock_hold_seconds_sum",
      12,
    ],
    "a wait for a mutex": [
      (m) => m.mutexWait({ outcome: "taken", seconds: 2 }),
      'lockedcron_mutex_wait_seconds_sum{outcome="taken"}',
      2,
    ],
    "a tick kept waiting": [(m) => m.mutexBusy(), "lockedcron_mutex_busy_total", 1],
    "active runs": [(m) => m.runsActive(4), "lockedcron_runs_active", 4],
    "known LockedCronJobs": [(m) => m.lockedCronJobs(5), "lockedcron_lockedcronjobs", 5],
    "clock skew": [(m) => m.clockSkew(-3.5), "lockedcron_clock_skew_seconds", -3.5],
    "live replicas": [(m) => m.replicasLive(3), "lockedcron_replicas_live", 3],
    "the depth of the queue": [(m) => m.queueDepth(9), "lockedcron_workqueue_depth", 9],
    "an added key": [(m) => m.queueAdd(), "lockedcron_workqueue_adds_total", 1],
    "a retried key": [(m) => m.queueRetry(), "lockedcron_workqueue_retries_total", 1],
    "a reconcile": [
      (m) => m.queueDone({ outcome: "again", seconds: 0.5 }),
      'lockedcron_workqueue_work_seconds_sum{outcome="again"}',
      0.5,
    ],
    "a request, by code": [
      (m) => m.kubeRequest({ verb: "POST", resource: "jobs", code: 409, seconds: 0.1 }),
      'lockedcron_kube_requests_total{verb="POST",resource="jobs",code="409"}',
      1,
    ],
    "a request, by time": [
      (m) => m.kubeRequest({ verb: "GET", resource: "leases", code: "timeout", seconds: 0.25 }),
      'lockedcron_kube_request_seconds_sum{verb="GET",resource="leases"}',
      0.25,
    ],
    "a restarted watch": [
      (m) => m.watchRestart({ resource: "jobs", reason: "Expired" }),
      'lockedcron_watch_restarts_total{resource="jobs",reason="Expired"}',
      1,
    ],
    "a Redis node that answers": [
      (m) => m.redisNodeUp({ node: "0/redis-0:6379", up: true }),
      'lockedcron_redis_node_up{node="0/redis-0:6379"}',
      1,
    ],
    "a Redis node that does not": [
      (m) => m.redisNodeUp({ node: "1/[::1]:6379", up: false }),
      'lockedcron_redis_node_up{node="1/[::1]:6379"}',
      0,
    ],
    "a round trip": [
      (m) => m.redisRtt({ node: "0/a:1", seconds: 0.001 }),
      'lockedcron_redis_rtt_seconds_sum{node="0/a:1"}',
      0.001,
    ],
    "the CPU time of a node": [(m) => m.redisFacts(FACTS), nodeMetric("cpu_seconds"), 2],
    "the memory of a node": [(m) => m.redisFacts(FACTS), nodeMetric("memory_bytes"), 3],
    "the uptime of a node": [(m) => m.redisFacts(FACTS), nodeMetric("uptime_seconds"), 4],
    "the clock of a node": [(m) => m.redisFacts(FACTS), nodeMetric("clock_offset_seconds"), -5],
    "a renewal": [
      (m) => m.lockOperation({ operation: "extend", outcome: "renewed", seconds: 0.5 }),
      'lockedcron_lock_operation_seconds_sum{operation="extend",outcome="renewed"}',
      0.5,
    ],
    "a node without a say": [
      (m) => m.lockNodeFailure({ node: "0/a:1", reason: "TIMEOUT" }),
      'lockedcron_lock_node_failures_total{node="0/a:1",reason="TIMEOUT"}',
      1,
    ],
    "a wait in vain": [
      (m) => m.lockWait({ outcome: "held", seconds: 1.5 }),
      'lockedcron_lock_wait_seconds_sum{outcome="held"}',
      1.5,
    ],
    "a lock that was held": [
      (m) => m.lockHold({ end: "released", seconds: 20, shareOfLease: 0.5 }),
      'lockedcron_lock_hold_seconds_sum{end="released"}',
      20,
    ],
    "how much of its lease": [
      (m) => m.lockHold({ end: "deadline", seconds: 20, shareOfLease: 0.5 }),
      'lockedcron_lock_hold_lease_ratio_sum{end="deadline"}',
      0.5,
    ],
  };
  it.each(Object.entries(cases))("%s", async (_, [call, name, want]) => {
    const metrics = quiet();
    const before = (await samples(metrics))[name];
    call(metrics);
    expect((await samples(metrics))[name]).toBe(want);
    if (want !== 0) expect(before).not.toBe(want);
  });
});

it("hooks need no `this`", async () => {
  const metrics = quiet();
  const { claimConflict, text } = metrics;
  [0, 1].forEach(claimConflict);
  expect(await text()).toContain("lockedcron_claim_conflicts_total 2");
});

it("two of them in one process keep apart", async () => {
  const [one, two] = [quiet(), quiet()];
  one.takeover();
  expect((await samples(two))["lockedcron_takeovers_total"]).toBe(0);
});

describe("labels are bounded", () => {
  it("free text and credentials become other", async () => {
    const metrics = quiet();
    metrics.tickMissed({ reason: "no Job within 10 s" });
    metrics.redisNodeUp({ node: "redis://:hush@a:1", up: true });
    const text = await metrics.text();
    expect(text).toContain('lockedcron_ticks_missed_total{reason="other"} 1');
    expect(text).not.toContain("hush");
  });

  it("one value too many becomes other, known ones go on", async () => {
    const metrics = quiet();
    for (let i = 0; i < 1_000; i++) metrics.tickMissed({ reason: `Reason${i}` });
    metrics.tickMissed({ reason: "Reason0" });
    const missed = Object.entries(await samples(metrics)).filter(([name]) =>
      name.startsWith("lockedcron_ticks_missed_total{"),
    );
    expect(missed).toHaveLength(101);
    expect(Object.fromEntries(missed)).toMatchObject({
      'lockedcron_ticks_missed_total{reason="other"}': 900,
      'lockedcron_ticks_missed_total{reason="Reason0"}': 2,
    });
  });
});

it("tells version, event-loop lag, CPU and memory of the process", async () => {
  const text = await createMetrics({ version: "1.2.3", tzdata: "2026f" }).text();
  for (const name of [
    'lockedcron_build_info{version="1.2.3"} 1',
    'lockedcron_tzdata_info{version="2026f"} 1',
    "nodejs_eventloop_lag_p99_seconds",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
  ]) {
    expect(text).toContain(name);
  }
});

it("lists every metric for the documentation", async () => {
  const exposed = [...(await quiet().text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  const listed = metricRows().map((row) => [row.name, row.type]);
  expect(listed).toEqual(exposed.map(([, name, type]) => [name, type]));
  expect(metricRows().find((row) => row.name === "lockedcron_kube_requests_total")?.labels).toEqual(
    ["verb", "resource", "code"],
  );
});
