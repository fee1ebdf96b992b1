/**
 * What takes time to see, on five local redis-server processes:
 *   node bench/lock/soak.ts [minutes with a hung node, default 10]
 * memory and latency with a node hung all the time; latency when it returns; how late a loss is signalled when every
 * node hangs; how long a key stays taken after its holder was killed. Writes bench/out/lock-soak.json.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { createQuorumLock } from "../../src/lock/index.ts";
import { startRedisNodes } from "../../test/redis/server.ts";
import { quantile, round } from "../lib/stats.ts";
import { failovers } from "./failover.ts";

const [first = "10", ...rest] = process.argv.slice(2);
const LEASE_MS = 1_000;
const CLIENTS = 4;
/** Between two cycles of one client, ms: what is looked for is growth, not speed. */
const PAUSE_MS = 5;
const WINDOW_MS = 10_000;
const LOSSES = 20;
const CRASHES = 10;
const RETRY_MS = 50;

interface Window {
  readonly second: number;
  readonly rss_mb: number;
  readonly cycles: number;
  readonly errors: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

if (first === "hold") await holdUntilKilled(rest);
else await main(Number(first));

/** In a process of its own: holds a key until it is killed. */
async function holdUntilKilled([key = "", ...nodes]: readonly string[]): Promise<void> {
  const lock = createQuorumLock({ nodes });
  await lock.ready();
  await lock.acquire(key, { leaseMs: LEASE_MS, watchdog: true, waitMs: 10_000 });
  process.send?.("held");
}

async function main(minutes: number): Promise<void> {
  const nodes = await startRedisNodes(5);
  const urls = nodes.map(({ url }) => url);
  try {
    const hung = await soak(urls, minutes * 60_000, WINDOW_MS, nodes[4]!);
    const back = await comeBack(urls, nodes[4]!);
    const lateness = await losses(urls, nodes);
    const freed = await crashes(urls);
    const sentinel = await failovers();
    const result = {
      hung_node: hung,
      node_returns: back,
      loss_signal_late_ms: lateness,
      freed_after_crash_ms: freed,
      sentinel,
    };
    const rss = hung.map(({ rss_mb }) => rss_mb);
    console.log(
      `RSS with a hung node, MB: ${rss[0]} at first, ${Math.max(...rss)} at most, ${rss.at(-1)} at last`,
    );
    console.log(
      `loss signalled after the deadline, ms: median ${round(quantile(lateness, 0.5))}, most ${round(Math.max(...lateness))}`,
    );
    console.log(
      `key free after its holder was killed, ms (lease ${LEASE_MS}, retry ${RETRY_MS}): most ${round(Math.max(...freed))}`,
    );
    for (const [what, times] of Object.entries(sentinel) as [string, number[]][]) {
      const most = round(Math.max(...times));
      console.log(`Sentinel, ${what}: median ${round(quantile(times, 0.5))}, most ${most}`);
    }
    const out = `${import.meta.dirname}/../out`;
    mkdirSync(out, { recursive: true });
    writeFileSync(`${out}/lock-soak.json`, `${JSON.stringify(result, null, 2)}\n`);
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
  }
}

/** Cycles for a while, and what each window of it was like. */
async function soak(
  urls: readonly string[],
  forMs: number,
  windowMs: number,
  victim: { pause(): void },
): Promise<Window[]> {
  await using lock = createQuorumLock({ nodes: urls });
  await lock.ready();
  victim.pause();
  return await cycles(lock, forMs, windowMs);
}

async function cycles(
  lock: ReturnType<typeof createQuorumLock>,
  forMs: number,
  windowMs: number,
): Promise<Window[]> {
  const began = performance.now();
  const windows: Window[] = [];
  let samples: number[] = [];
  let errors = 0;
  const going = () => performance.now() - began < forMs;
  const client = async (): Promise<void> => {
    while (going()) {
      const start = performance.now();
      try {
        const held = await lock.acquire(`soak:${randomUUID()}`, { leaseMs: 10_000 });
        await held.release();
        samples.push(performance.now() - start);
      } catch {
        errors += 1;
      }
      await sleep(PAUSE_MS);
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  while (going()) {
    await sleep(Math.min(windowMs, Math.max(1, forMs - (performance.now() - began))));
    const taken = samples;
    samples = [];
    const window = {
      second: Math.round((performance.now() - began) / 100) / 10,
      rss_mb: Math.round(process.memoryUsage().rss / 2 ** 20),
      cycles: taken.length,
      errors,
      p50_ms: quantile(taken, 0.5),
      p99_ms: quantile(taken, 0.99),
    };
    windows.push(window);
    if (windowMs >= WINDOW_MS) {
      const { second, rss_mb, p50_ms, p99_ms } = window;
      console.log(
        `${second} s: RSS ${rss_mb} MB, ${taken.length} cycles, p50 ${p50_ms.toFixed(2)}, p99 ${p99_ms.toFixed(2)} ms, ${errors} errors`,
      );
    }
  }
  await Promise.all(clients);
  return windows;
}

/** Tenths of a second around the return of a node that hung for ten seconds. */
async function comeBack(
  urls: readonly string[],
  victim: { pause(): void; resume(): void },
): Promise<Window[]> {
  victim.resume();
  await using lock = createQuorumLock({ nodes: urls });
  await lock.ready();
  victim.pause();
  const timer = setTimeout(() => victim.resume(), 10_000);
  const windows = await cycles(lock, 15_000, 250);
  clearTimeout(timer);
  const worst = (from: number, to: number) =>
    Math.max(...windows.filter(({ second }) => second >= from && second < to).map((w) => w.p99_ms));
  console.log(
    `p99 of a quarter second, ms: ${worst(5, 10).toFixed(2)} at most while it hangs, ${worst(10, 12).toFixed(2)} when it returns, ${worst(12, 15).toFixed(2)} after`,
  );
  return windows;
}

/** Milliseconds between the deadline of a lock and its signal, every node being hung. */
async function losses(
  urls: readonly string[],
  nodes: readonly { pause(): void; resume(): void }[],
): Promise<number[]> {
  const late: number[] = [];
  for (let i = 0; i < LOSSES; i += 1) {
    await using lock = createQuorumLock({ nodes: urls });
    await lock.ready();
    const held = await lock.acquire(`loss:${randomUUID()}`, {
      leaseMs: LEASE_MS,
      watchdog: true,
      waitMs: 10_000,
    });
    let deadline = performance.now() + held.remainingMs();
    for (const node of nodes) node.pause();
    const lost = once(held.signal, "abort").then(() => performance.now());
    while (!held.signal.aborted) {
      // A renewal may have come through just before.
      if (held.remainingMs() > 0) deadline = performance.now() + held.remainingMs();
      await sleep(2);
    }
    late.push((await lost) - deadline);
    for (const node of nodes) node.resume();
  }
  return late;
}

/** Milliseconds from SIGKILL of a holder until another one has the key. */
async function crashes(urls: readonly string[]): Promise<number[]> {
  const freed: number[] = [];
  await using lock = createQuorumLock({ nodes: urls });
  await lock.ready();
  for (let i = 0; i < CRASHES; i += 1) {
    const key = `crash:${randomUUID()}`;
    const child = fork(import.meta.filename, ["hold", key, ...urls]);
    await once(child, "message");
    await sleep(Math.random() * LEASE_MS);
    child.kill("SIGKILL");
    const killed = performance.now();
    const held = await lock.acquire(key, { waitMs: 30_000, retryIntervalMs: RETRY_MS });
    freed.push(performance.now() - killed);
    await held.release();
  }
  return freed;
}
