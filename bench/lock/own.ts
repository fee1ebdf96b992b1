/**
 * What a dead or hung node costs: the p50 with it beside the p50 without it, in pairs of slices one after the other, so
 * that what the machine does besides does not look like it.
 *   node bench/lock/own.ts [pairs per row, default 4]
 * Prints a table and writes bench/out/lock-own.json.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { type RedisServer, startRedisNodes } from "../../test/redis/server.ts";
import { quantile } from "../lib/stats.ts";
import { startWorker, type Worker } from "./worker-process.ts";

const PAIRS = Number(process.argv[2] ?? 4);
const SLICE_MS = 500;
/** Until the loss, or the return, of the node has been noticed. */
const SETTLE_MS = 2_000;
const OURS = ["raw", "lockedcron", "lockedcron by value"] as const;
const HERE = import.meta.dirname;

interface Fault {
  readonly name: string;
  begin(node: RedisServer): void | Promise<void>;
  end(node: RedisServer): void | Promise<unknown>;
}

const FAULTS: readonly Fault[] = [
  { name: "one killed", begin: (node) => node.kill(), end: (node) => node.start() },
  { name: "one stopped", begin: (node) => node.pause(), end: (node) => node.resume() },
];

const CELLS = FAULTS.flatMap((fault) => [1, 32].map((clients) => [fault, clients] as const));

async function p50(worker: Worker, clients: number, ms: number): Promise<number> {
  const slice = await worker.slice(clients, ms);
  if (slice === null || slice.samples.length === 0) throw new Error(`${worker.name} hangs`);
  return quantile(slice.samples, 0.5);
}

/** Medians over the pairs. */
async function compare(worker: Worker, fault: Fault, clients: number, node: RedisServer) {
  await p50(worker, clients, SETTLE_MS);
  const pairs: { healthy: number; faulty: number }[] = [];
  for (let i = 0; i < PAIRS; i += 1) {
    const healthy = await p50(worker, clients, SLICE_MS);
    await fault.begin(node);
    await p50(worker, clients, SETTLE_MS);
    const faulty = await p50(worker, clients, SLICE_MS);
    pairs.push({ healthy, faulty });
    await fault.end(node);
    await p50(worker, clients, SETTLE_MS);
  }
  const middle = (values: number[]): number => Math.round(quantile(values, 0.5) * 1_000) / 1_000;
  return {
    healthy_p50_ms: middle(pairs.map((pair) => pair.healthy)),
    faulty_p50_ms: middle(pairs.map((pair) => pair.faulty)),
    ratio: middle(pairs.map(({ healthy, faulty }) => faulty / healthy)),
  };
}

const nodes = await startRedisNodes(5);
const ports = nodes.map(({ port }) => String(port));
const rows: object[] = [];
console.log(
  "library               fault        clients  healthy ms  with it ms  ratio (median of pairs)",
);
try {
  for (const library of OURS) {
    const script = [process.execPath, `${HERE}/worker.ts`, library];
    const worker = await startWorker(library, [...script, ...ports]);
    try {
      for (const [fault, clients] of CELLS) {
        const figures = await compare(worker, fault, clients, nodes[4]!);
        rows.push({ library, fault: fault.name, clients, ...figures });
        console.log(
          library.padEnd(21),
          fault.name.padEnd(12),
          String(clients).padStart(7),
          ...Object.values(figures).map((n) => n.toFixed(3).padStart(11)),
        );
      }
    } finally {
      await worker.stop();
    }
  }
} finally {
  await Promise.all(nodes.map((node) => node.stop()));
}
mkdirSync(`${HERE}/../out`, { recursive: true });
writeFileSync(`${HERE}/../out/lock-own.json`, `${JSON.stringify(rows, null, 2)}\n`);
