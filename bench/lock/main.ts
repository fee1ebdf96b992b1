/**
 * acquire + release on five local redis-server processes: ours, a raw majority of commands, and other libraries, each in
 * a process of its own, in one run: slices alternate, so that what the machine does besides hits all alike.
 *   node bench/lock/main.ts [milliseconds per cell] [beginnings of names …]
 * Prints a table and writes bench/out/lock.json.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { startRedisNodes, type RedisServer } from "../../test/redis/server.ts";
import { LIBRARIES } from "./libraries.ts";
import { PEERS } from "./peers.ts";
import { startWorker, type Worker } from "./worker-process.ts";

interface Row {
  library: string;
  condition: string;
  clients: number;
  /** null: it never completed */
  p50_ms: number | null;
  p99_ms: number | null;
  ops_per_s: number;
  p50_ratio_to_raw: number | null;
  rss_mb: number | null;
  errors: number;
}

const CELL_MS = Number(process.argv[2] ?? 3_000);
const WANTED = process.argv.slice(3);
const SLICES = 6;
const SLOW_MS = 5_000;
/** Until the code is compiled; colder than this, what is measured is V8. */
const WARM_UP_MS = 1_500;
const HERE = import.meta.dirname;
const OUT = `${HERE}/../out`;

const CONDITIONS: readonly { name: string; harm(node: RedisServer): void | Promise<void> }[] = [
  { name: "healthy", harm: () => undefined },
  { name: "one killed", harm: (node) => node.kill() },
  { name: "one stopped", harm: (node) => node.pause() },
];

function at(sorted: readonly number[], share: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

async function measure(
  workers: readonly Worker[],
  condition: string,
  clients: number,
): Promise<Row[]> {
  const cells = new Map(
    workers.map(({ name }) => [
      name,
      { samples: [] as number[], errors: 0, rss: 0, hung: false, enough: false },
    ]),
  );
  for (let i = 0; i < SLICES; i += 1) {
    for (const worker of workers) {
      const cell = cells.get(worker.name)!;
      if (cell.hung || cell.enough) continue;
      const slice = await worker.slice(clients, CELL_MS / SLICES);
      if (slice === null) {
        cell.hung = true;
        continue;
      }
      for (const sample of slice.samples) cell.samples.push(sample);
      cell.errors += slice.errors;
      cell.rss = slice.rss_mb;
      // Ten seconds for one cycle: once is enough to know.
      if (Math.max(...slice.samples.slice(-1)) > SLOW_MS) cell.enough = true;
    }
  }
  const raw = at(
    cells.get("raw")!.samples.toSorted((a, b) => a - b),
    0.5,
  );
  return [...cells].map(([library, { samples, errors, rss, hung }]) => {
    samples.sort((a, b) => a - b);
    const p50 = at(samples, 0.5);
    return {
      library,
      condition,
      clients,
      p50_ms: p50,
      p99_ms: at(samples, 0.99),
      ops_per_s: hung ? 0 : Math.round(samples.length / (CELL_MS / 1_000)),
      p50_ratio_to_raw: p50 === null || raw === null ? null : p50 / raw,
      rss_mb: hung ? null : Math.round(rss),
      errors,
    };
  });
}

function print({ library, condition, clients, ...row }: Row): void {
  const number = (value: number | null, digits: number) =>
    (value === null ? "–" : value.toFixed(digits)).padStart(9);
  const end =
    row.p50_ms === null ? "  never completes" : row.errors > 0 ? `  ${row.errors} errors` : "";
  console.log(
    `${condition.padEnd(12)}${String(clients).padStart(3)}  ${library.padEnd(24)}` +
      number(row.p50_ms, 2) +
      number(row.p99_ms, 2) +
      number(row.ops_per_s, 0) +
      number(row.p50_ratio_to_raw, 2) +
      number(row.rss_mb, 0) +
      end,
  );
}

if (!existsSync(`${HERE}/../node_modules`)) {
  console.error("installing the other libraries into bench/node_modules …");
  execFileSync("npm", ["ci", "--prefix", `${HERE}/..`], { stdio: "inherit" });
}
/** raw is always there: the others are told as ratios to it. */
const wanted = ({ name }: { name: string }): boolean =>
  name === "raw" || WANTED.length === 0 || WANTED.some((word) => name.startsWith(word));
const peers = PEERS.filter(wanted).flatMap((one) => {
  const command = one.command();
  return command === null ? [] : [{ name: one.name, command }];
});
const rows: Row[] = [];
console.log(
  `${"condition".padEnd(12)}${"cl.".padStart(3)}  ${"library".padEnd(24)}` +
    ["p50 ms", "p99 ms", "ops/s", "× raw", "RSS MB"].map((text) => text.padStart(9)).join(""),
);
for (const { name: condition, harm } of CONDITIONS) {
  const nodes = await startRedisNodes(5);
  const ports = nodes.map(({ port }) => String(port));
  const commands = new Map<string, readonly string[]>(
    LIBRARIES.filter(wanted).map(({ name }) => [
      name,
      [process.execPath, `${HERE}/worker.ts`, name, ...ports],
    ]),
  );
  for (const { name, command } of peers) commands.set(name, [...command, ...ports]);
  try {
    for (const clients of [1, 32]) {
      // Healthy while they connect: what is measured is the fault, not a start without a node.
      for (const node of nodes) {
        node.resume();
        if (!node.alive()) await node.start();
      }
      const workers = await Promise.all(
        [...commands].map(([name, argv]) => startWorker(name, argv)),
      );
      try {
        for (const worker of workers) await worker.slice(clients, WARM_UP_MS);
        await harm(nodes[4]!);
        const cell = await measure(workers, condition, clients);
        cell.forEach(print);
        rows.push(...cell);
      } finally {
        await Promise.all(workers.map((worker) => worker.stop()));
      }
    }
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
  }
}
mkdirSync(OUT, { recursive: true });
writeFileSync(`${OUT}/lock.json`, `${JSON.stringify(rows, null, 2)}\n`);
