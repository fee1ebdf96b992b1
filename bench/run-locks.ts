/**
 * What live run locks cost: CPU of each replica and commands per second on each Redis node, beside the same replicas with
 * no run.
 *
 *   node bench/run-locks.ts [--n 1000] [--seconds 60]
 *
 * Prints the figures and writes bench/out/run-locks.json. The Jobs are suspended: their runs live and have no pods.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { resources } from "../src/controller/caches.ts";
import { cpuSeconds } from "./lib/cpu.ts";
import { cron, KINDS } from "./lib/cron.ts";
import { inParallel, nextMinute, until } from "./lib/jobs.ts";
import { setUp } from "./lib/setup.ts";
import { round } from "./lib/stats.ts";

const { values: flags } = parseArgs({
  options: {
    n: { type: "string", default: "1000" },
    seconds: { type: "string", default: "60" },
  },
});
const n = Number(flags.n);
const seconds = Number(flags.seconds);

await using s = await setUp();

/** Calls of scripts and commands that a node has served so far; a script counts once, whatever it does inside. */
async function served(): Promise<number[]> {
  return Promise.all(
    s.redis.map(async (server) => {
      const info = String(await server.command("INFO", "commandstats"));
      return [...info.matchAll(/^cmdstat_(?:evalsha|eval|ping|info|time):calls=(\d+)/gm)]
        .map(([, calls]) => Number(calls))
        .reduce((a, b) => a + b, 0);
    }),
  );
}

async function measure(): Promise<{ cpu: number[]; redis: number[] }> {
  const pids = [...s.replicas.values()].map((replica) => replica.pid);
  const before = { cpu: pids.map(cpuSeconds), redis: await served() };
  const begun = performance.now();
  await until(Date.now() + seconds * 1_000);
  const passed = (performance.now() - begun) / 1_000;
  const after = { cpu: pids.map(cpuSeconds), redis: await served() };
  const rate = (from: number[], to: number[]): number[] =>
    to.map((value, i) => (value - (from[i] ?? 0)) / passed);
  return {
    cpu: rate(before.cpu, after.cpu).map((share) => share * 100),
    redis: rate(before.redis, after.redis),
  };
}

await s.cluster.kubectl(["create", "namespace", "runs"]);
// One tick, when all of them are there and the cost without runs is measured.
const tick = nextMinute(60_000 + n * 30 + seconds * 1_000);
const at = new Date(tick);
const schedule = `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
await inParallel(n, 8, (i) =>
  s.client.create(KINDS.ours, cron("ours", `run-${i}`, "runs", schedule)),
);
for (;;) {
  const { items } = await s.client.list(resources.leases, { namespace: "runs" });
  if (items.length === n) break;
  await until(Date.now() + 500);
}
await until(Date.now() + 10_000);
const idle = await measure();
await until(tick);
for (;;) {
  const { items } = await s.client.list(resources.jobs, { namespace: "runs" });
  if (items.length === n) break;
  await until(Date.now() + 500);
}
// Statuses are written, launches are settled.
await until(Date.now() + 30_000);
const live = await measure();
const sum = (list: number[]): number => list.reduce((a, b) => a + b, 0);
const result = {
  n,
  cpu_percent_all_replicas: { idle: round(sum(idle.cpu)), live: round(sum(live.cpu)) },
  cpu_percent_highest_replica: {
    idle: round(Math.max(...idle.cpu)),
    live: round(Math.max(...live.cpu)),
  },
  redis_calls_per_second_highest_node: {
    idle: round(Math.max(...idle.redis)),
    live: round(Math.max(...live.redis)),
  },
};
mkdirSync(new URL("out/", import.meta.url), { recursive: true });
writeFileSync(
  new URL("out/run-locks.json", import.meta.url),
  `${JSON.stringify(result, null, 2)}\n`,
);
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
