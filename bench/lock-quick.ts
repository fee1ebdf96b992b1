/**
 * acquire + release on five local redis-server processes, ours against a raw parallel SET NX PX + EVALSHA majority:
 *   node bench/lock-quick.ts [milliseconds per cell]
 * Each cell alternates short slices of both, so that noise of the machine hits them alike.
 */
import { createHash, randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { createQuorumLock } from "../src/lock/index.ts";
import { startRedisNodes, type RedisServer } from "../test/redis/server.ts";

const CELL_MS = Number(process.argv[2] ?? 3000);
const SLICES = 6;
const LEASE_MS = 10_000;
const DEL =
  "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const DEL_SHA = createHash("sha1").update(DEL).digest("hex");

type Cycle = (key: string, value: string) => Promise<void>;

function majority(calls: Promise<unknown>[], needed: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let yes = 0;
    let no = 0;
    const fail = () => {
      no += 1;
      if (no > calls.length - needed) reject(new Error("no quorum"));
    };
    for (const call of calls) {
      call.then((answer) => {
        if (answer === null || answer === 0) return fail();
        yes += 1;
        if (yes === needed) resolve();
      }, fail);
    }
  });
}

async function rawClients(nodes: readonly RedisServer[]): Promise<Redis[]> {
  const clients = nodes.map(
    ({ port }) => new Redis({ port, host: "127.0.0.1", enableOfflineQueue: false, protocol: 2 }),
  );
  for (const client of clients) client.on("error", () => undefined);
  await Promise.all(clients.map((c) => new Promise((resolve) => c.once("ready", resolve))));
  for (const client of clients) await client.call("SCRIPT", "LOAD", DEL);
  return clients;
}

function rawCycle(clients: readonly Redis[]): Cycle {
  return async (key, value) => {
    await majority(
      clients.map((c) => c.set(key, value, "PX", LEASE_MS, "NX")),
      3,
    );
    await majority(
      clients.map((c) => c.evalsha(DEL_SHA, 1, key, value)),
      3,
    );
  };
}

async function slice(cycle: Cycle, clients: number, ms: number, out: number[]): Promise<void> {
  const until = performance.now() + ms;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < until) {
        const start = performance.now();
        await cycle(randomUUID(), randomUUID());
        out.push(performance.now() - start);
      }
    }),
  );
}

const at = (sorted: readonly number[], share: number) =>
  sorted[Math.floor(sorted.length * share)] ?? NaN;

async function cell(condition: string, clients: number, cycles: Record<string, Cycle>) {
  const p50: Record<string, number> = {};
  const samples = new Map(Object.keys(cycles).map((name) => [name, [] as number[]]));
  const cpu = new Map<string, number>();
  for (let i = 0; i < SLICES; i += 1) {
    for (const [name, cycle] of Object.entries(cycles)) {
      const before = process.cpuUsage();
      await slice(cycle, clients, CELL_MS / SLICES, samples.get(name)!);
      const { user, system } = process.cpuUsage(before);
      cpu.set(name, (cpu.get(name) ?? 0) + user + system);
    }
  }
  for (const [name, list] of samples) {
    list.sort((a, b) => a - b);
    p50[name] = at(list, 0.5);
    console.log(
      `${condition.padEnd(12)} ${String(clients).padStart(3)} clients  ${name.padEnd(5)} ` +
        `p50 ${at(list, 0.5).toFixed(2)}  p99 ${at(list, 0.99).toFixed(2)} ms  ` +
        `${Math.round(list.length / (CELL_MS / 1000))} ops/s  ` +
        `${Math.round(cpu.get(name)! / list.length)} µs CPU/op  ×${(at(list, 0.5) / p50["raw"]!).toFixed(2)}`,
    );
  }
}

const nodes = await startRedisNodes(5);
try {
  const clients = await rawClients(nodes);
  await using lock = createQuorumLock({ nodes: nodes.map(({ url }) => url) });
  await lock.ready();
  const cycles: Record<string, Cycle> = {
    raw: rawCycle(clients),
    ours: async (key, value) => {
      const result = await lock.tryAcquire(key, value, LEASE_MS);
      if (result.outcome !== "acquired") throw new Error(JSON.stringify(result));
      await lock.release(key, value, LEASE_MS);
    },
  };
  await cell("(warm-up)", 4, cycles);
  for (const count of [1, 32]) await cell("healthy", count, cycles);
  nodes[4]!.pause();
  for (const count of [1, 32]) await cell("one stopped", count, cycles);
  nodes[4]!.resume();
  await nodes[4]!.kill();
  for (const count of [1, 32]) await cell("one killed", count, cycles);
  for (const client of clients) client.disconnect();
} finally {
  await Promise.all(nodes.map((node) => node.stop()));
}
