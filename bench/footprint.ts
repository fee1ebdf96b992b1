/**
 * What a replica costs when nothing is due: start to ready, CPU at rest, resident memory.
 *
 *   node bench/footprint.ts [--n 100] [--seconds 60]
 *
 * Prints the figures and writes bench/out/footprint.json. CPU is the processes' own CPU time, so that other load on the
 * machine does not count.
 */
import { readFileSync, mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { resources } from "../src/controller/caches.ts";
import { cpuSeconds } from "./lib/cpu.ts";
import { cron, KINDS } from "./lib/cron.ts";
import { inParallel, until } from "./lib/jobs.ts";
import { setUp } from "./lib/setup.ts";
import { round } from "./lib/stats.ts";

const { values: flags } = parseArgs({
  options: {
    n: { type: "string", default: "100" },
    seconds: { type: "string", default: "60" },
  },
});
const n = Number(flags.n);
const seconds = Number(flags.seconds);
function residentMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kb) / 1024;
}

await using s = await setUp();
await s.cluster.kubectl(["create", "namespace", "idle"]);
await inParallel(n, 8, (i) =>
  s.client.create(KINDS.ours, cron("ours", `idle-${i}`, "idle", "0 0 29 2 *")),
);
// A ledger each, so that the start is that of a cluster in use.
for (;;) {
  const { items } = await s.client.list(resources.leases, { namespace: "idle" });
  if (items.length === n) break;
  await until(Date.now() + 200);
}
const begun = performance.now();
const fourth = await s.start("replica-d");
const startMs = performance.now() - begun;
const startCpuMs = cpuSeconds(fourth.pid) * 1_000;

await until(Date.now() + 10_000);
const pids = [...s.replicas.values()].map((replica) => replica.pid);
const before = pids.map(cpuSeconds);
await until(Date.now() + seconds * 1_000);
const shares = pids.map((pid, i) => ((cpuSeconds(pid) - (before[i] ?? 0)) / seconds) * 100);
const result = {
  n,
  start_to_ready_ms: round(startMs),
  start_cpu_ms: round(startCpuMs),
  idle_cpu_percent: round(shares.reduce((a, b) => a + b, 0) / shares.length),
  rss_mb: round(residentMb(fourth.pid)),
};
mkdirSync(new URL("out/", import.meta.url), { recursive: true });
writeFileSync(
  new URL("out/footprint.json", import.meta.url),
  `${JSON.stringify(result, null, 2)}\n`,
);
process.stdout.write(
  `${n} LockedCronJobs: start to ready ${result.start_to_ready_ms} ms (${result.start_cpu_ms} ms of CPU), idle CPU ${result.idle_cpu_percent} % of a core, ${result.rss_mb} MB\n`,
);
