/**
 * Tick -> Job created: ours against native CronJob on the same cluster in the same run.
 *
 *   node bench/tick.ts [--only one,many,failover,ours] [--minutes 2] [--n 1000]
 *
 * Prints the table of the budgets and writes bench/out/tick.json. Jobs are created suspended, so that no pods disturb.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { inParallel, nextMinute, until, watchJobs, type Seen } from "./lib/jobs.ts";
import { measureCpu } from "./lib/cpu.ts";
import { cron, KINDS } from "./lib/cron.ts";
import type { KubeObject } from "../src/kube/index.ts";
import { setUp, type Setup } from "./lib/setup.ts";
import { quantile, round } from "./lib/stats.ts";

interface Row {
  name: string;
  n: number;
  launched: number;
  due: number;
  p50_ms: number;
  p99_ms: number;
  last_ms: number;
  ratio_to_native: number | null;
}

const { values: flags } = parseArgs({
  options: {
    only: { type: "string", default: "one,many,failover" },
    minutes: { type: "string", default: "2" },
    n: { type: "string", default: "1000" },
  },
});
const parts = flags.only.split(",");
const minutes = Number(flags.minutes);
const many = Number(flags.n);
const rows: Row[] = [];
const say = (text: string): void => void process.stderr.write(`[bench] ${text}\n`);

const FAST_KCM = {
  "kube-api-qps": 500,
  "kube-api-burst": 1000,
  "concurrent-cron-job-syncs": 50,
  "concurrent-job-syncs": 20,
};

function rowOf(name: string, n: number, due: number, seen: readonly Seen[]): Row {
  const delays = seen.map((s) => s.at - s.tick);
  return {
    name,
    n,
    due,
    launched: new Set(seen.map((s) => s.name)).size,
    p50_ms: round(quantile(delays, 0.5)),
    p99_ms: round(quantile(delays, 0.99)),
    last_ms: round(quantile(delays, 1)),
    ratio_to_native: null,
  };
}

/** N of a kind at `* * * * *` over some minutes; Jobs count for the minute they are named after. */
async function minuteTicks(
  s: Setup,
  kind: keyof typeof KINDS,
  label: string,
  n: number,
): Promise<Row> {
  const namespace = `${kind}-${n}-${Date.now().toString(36)}`;
  await s.cluster.kubectl(["create", "namespace", namespace]);
  const start = nextMinute(n > 1 ? 20_000 : 3_000);
  say(`${label}: ${n} object(s), first minute at ${new Date(start).toISOString()}`);
  const names = Array.from({ length: n }, (_, i) => `${kind}-${i}`);
  await inParallel(n, 16, (i) =>
    s.client.create(KINDS[kind], cron(kind, names[i] as string, namespace, "* * * * *")),
  );
  if (kind === "ours") await settled(s, namespace);
  // ORDER: the first minute counts only when every object was there before it, and what each of them costs once (its ledger, a
  // dry run of its Job, its first status) is over.
  const first = nextMinute(5_000);
  say(`${label}: all created, measured from ${new Date(first).toISOString()}`);
  const jobs = await watchJobs(s.client);
  await until(first - 500);
  const cpu = measureCpu({
    apiServer: [s.cluster.apiServer.pid ?? 0],
    etcd: [s.cluster.etcd.pid ?? 0],
    controllerManager: [s.cluster.controllerManager.pid ?? 0],
    replicas: [...s.replicas.values()].map((replica) => replica.pid),
    redis: s.redis.map((redis) => redis.pid),
    bench: [process.pid],
  });
  const end = first + (minutes - 1) * 60_000 + 59_000;
  await until(end);
  say(`${label}: CPU seconds ${JSON.stringify(cpu())}`);
  await jobs.stop();
  const seen = jobs.seen.filter(
    (j) => j.owner.startsWith(`${kind}-`) && j.tick >= first && j.at >= first && j.at <= end,
  );
  const row = rowOf(label, n, n * minutes, seen);
  say(`${label}: ${JSON.stringify(row)}`);
  await s.cluster.kubectl(["delete", "namespace", namespace, "--wait=true"]);
  return row;
}

/** Until each LockedCronJob has its first status, with the verdict on its template. */
async function settled(s: Setup, namespace: string): Promise<void> {
  type WithStatus = KubeObject & { status?: { conditions?: { type: string }[] } };
  const known = ({ status }: WithStatus): boolean =>
    status?.conditions?.some(({ type }) => type === "TemplateAccepted") === true;
  for (;;) {
    const { items } = await s.client.list<WithStatus>(KINDS.ours, { namespace });
    if (items.every(known)) return;
    await until(Date.now() + 1_000);
  }
}

/** One LockedCronJob, every 2 s: enough ticks for a p99. */
async function manyTicksOfOne(s: Setup): Promise<Row> {
  const jobs = await watchJobs(s.client);
  const ticks = 100;
  await s.cluster.kubectl(["create", "namespace", "one"]);
  await s.client.create(KINDS.ours, cron("ours", "every", "one", "@every 2s"));
  say(`one LockedCronJob, ${ticks} ticks of 2 s`);
  await until(Date.now() + ticks * 2_000 + 1_500);
  await s.cluster.kubectl(["delete", "namespace", "one", "--wait=true"]);
  await jobs.stop();
  return rowOf("ours, one LockedCronJob", 1, ticks, jobs.seen.slice(0, ticks));
}

/** SIGKILL of the replica that would win, just before the tick: how late is the tick. */
async function failover(s: Setup): Promise<Row> {
  const jobs = await watchJobs(s.client);
  await s.cluster.kubectl(["create", "namespace", "failover"]);
  await s.client.create(KINDS.ours, cron("ours", "fail", "failover", "@every 5s"));
  const measured: Seen[] = [];
  const rounds = 10;
  let known = 0;
  const next = async (): Promise<Seen> => {
    for (;;) {
      const seen = jobs.seen[known];
      if (seen !== undefined) return seen;
      await until(Date.now() + 2);
    }
  };
  for (let i = 0; i < rounds; i++) {
    const job = await next();
    known = jobs.seen.length;
    const winner = await winnerOf(s, job.name);
    await until(job.tick + 5_000 - 50);
    await s.replicas.get(winner)?.kill();
    say(`failover ${i + 1} of ${rounds}: killed ${winner}, the elected replica`);
    measured.push(await next());
    known = jobs.seen.length;
    await s.start(winner);
  }
  await jobs.stop();
  await s.cluster.kubectl(["delete", "namespace", "failover", "--wait=true"]);
  return rowOf("ours, elected replica killed 50 ms before", 1, rounds, measured);
}

async function winnerOf(s: Setup, job: string): Promise<string> {
  for (;;) {
    for (const [name, replica] of s.replicas) {
      const won = replica.lines.some(
        (l) => l.event === "recordStarted" && String(l["runId"]).startsWith(job),
      );
      if (won) return name;
    }
    await until(Date.now() + 5);
  }
}

function ratio(ours: Row | undefined, native: Row | undefined, field: "p99_ms" | "last_ms"): void {
  if (ours !== undefined && native !== undefined) {
    ours.ratio_to_native = Math.round((ours[field] / native[field]) * 1000) / 1000;
  }
}

const s = await setUp();
try {
  if (parts.includes("one")) {
    const native = await minuteTicks(s, "native", "native CronJob, one", 1);
    const ours = await manyTicksOfOne(s);
    ratio(ours, native, "p99_ms");
    rows.push(native, ours);
  }
  if (parts.includes("many")) {
    const slow = await minuteTicks(s, "native", "native CronJob, defaults", many);
    await s.cluster.controllerManager.restart({ flags: FAST_KCM });
    const fast = await minuteTicks(s, "native", "native CronJob, qps 500", many);
    const ours = await minuteTicks(s, "ours", "ours, default settings", many);
    ratio(ours, fast, "last_ms");
    rows.push(slow, fast, ours);
  }
  // Ours alone, for work on it: half the time, and no ratio.
  if (parts.includes("ours")) {
    await s.cluster.controllerManager.restart({ flags: FAST_KCM });
    rows.push(await minuteTicks(s, "ours", "ours, default settings", many));
  }
  if (parts.includes("failover")) rows.push(await failover(s));
} finally {
  await s[Symbol.asyncDispose]();
}

mkdirSync(new URL("out/", import.meta.url), { recursive: true });
writeFileSync(new URL("out/tick.json", import.meta.url), `${JSON.stringify(rows, null, 2)}\n`);
for (const row of rows) {
  const { name, launched, due, p50_ms, p99_ms, last_ms, ratio_to_native } = row;
  process.stdout.write(
    `${name.padEnd(44)} ${`${launched}/${due}`.padStart(10)}  p50 ${p50_ms} ms  p99 ${p99_ms} ms  last ${last_ms} ms${
      ratio_to_native === null ? "" : `  ratio to native ${ratio_to_native}`
    }\n`,
  );
}
