import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  createQuorumLock as Create,
  FencingSource,
  QuorumLock,
} from "../../../src/lock/index.ts";
import { until } from "../../redis/facts.ts";
import { type FaultProxy, startProxy } from "../../redis/proxy.ts";
import type { RedisServer } from "../../redis/server.ts";
import { takeStock } from "../fixture.ts";
import { createExclusion } from "./exclusion.ts";
import { type Dice, dice } from "./seeded.ts";

export type Fault = "pause" | "cut" | "lossy" | "delay" | "wipe" | "bareMajorityThenWipe";

export interface RunOptions {
  readonly servers: readonly RedisServer[];
  /** The implementation under test: the real one, or one with a rule taken out. */
  readonly createQuorumLock: typeof Create;
  readonly seed: number;
  readonly leaseMs: number;
  readonly faults: readonly Fault[];
  readonly durationMs: number;
  /** Stop at the first violation. */
  readonly stopEarly: boolean;
  /** Tokens from the nodes' own counter, where no data is lost; otherwise from a strict one. */
  readonly counter?: boolean;
}

export interface RunResult {
  readonly violations: readonly string[];
  readonly acquired: number;
  /** Values of failed attempts that were still on a node well after everything worked again. */
  readonly residue: readonly string[];
  /** TTLs above the lease, or none. */
  readonly badTtls: readonly number[];
}

const CLIENTS = 3;
const LOSES_DATA: readonly Fault[] = ["wipe", "bareMajorityThenWipe"];
/** Holding is about so long, however long the lease is. */
const LONGEST_STAY_MS = 500;

/**
 * Clients that lock one key under random faults, everything on real servers; repeatable but for the machine's timing.
 * @throws Error when a socket or a timer is left afterwards
 */
export async function runHistory(options: RunOptions): Promise<RunResult> {
  const { servers, leaseMs } = options;
  const nothingLeft = takeStock();
  const key = `history:${randomUUID()}`;
  const exclusion = createExclusion();
  const failed = new Set<string>();
  const badTtls: number[] = [];
  const proxies: FaultProxy[][] = [];
  const locks: QuorumLock[] = [];
  for (let c = 0; c < CLIENTS; c += 1) {
    const own = await Promise.all(servers.map((server) => startProxy(() => server.port)));
    proxies.push(own);
    locks.push(
      options.createQuorumLock({
        nodes: own.map(({ url }) => url),
        listId: "history",
        nodeTimeoutMs: 400,
        heartbeatMs: 100,
        reconnectMaxMs: 50,
        // Only where data is lost: a server of an earlier run may be younger than the lease.
        ...(LOSES_DATA.some((fault) => options.faults.includes(fault)) && { maxLeaseMs: leaseMs }),
      }),
    );
  }
  await until("all up", () => locks.every((lock) => lock.health().up === servers.length));

  const deadline = performance.now() + options.durationMs;
  const going = () =>
    performance.now() < deadline && !(options.stopEarly && exclusion.violations.length > 0);
  const watch = setInterval(exclusion.look, 1);
  const strict = strictSource(dice(options.seed * 1_000));
  const clients = locks.map((lock, c) =>
    client(lock, `client ${c}`, key, dice(options.seed * 100 + c), {
      leaseMs,
      exclusion,
      failed,
      going,
      fencing: options.counter === true ? lock.counter("history-token:") : strict,
    }),
  );
  const chaos = breakThings(options, proxies, exclusion.note, going);
  const ttls = watchTtls(servers, key, leaseMs, badTtls, going);
  await Promise.all([...clients, chaos, ttls]);
  clearInterval(watch);

  for (const all of proxies) for (const proxy of all) Object.assign(proxy.faults, NO_FAULTS);
  await until("all connected", () =>
    locks.every((l) => l.health().nodes.every((n) => n.state !== "down")),
  );
  const residue = await leftOver(servers, key, failed);
  await Promise.all(locks.map((lock) => lock.close()));
  await Promise.all(proxies.flat().map((proxy) => proxy.close()));
  await nothingLeft();
  return { violations: exclusion.violations, acquired: exclusion.entered, residue, badTtls };
}

const NO_FAULTS = {
  dropReplies: false,
  dropRequests: false,
  delayMs: 0,
  garbage: null,
  refuse: false,
};

interface ClientContext {
  readonly leaseMs: number;
  readonly exclusion: ReturnType<typeof createExclusion>;
  readonly failed: Set<string>;
  readonly going: () => boolean;
  readonly fencing: FencingSource;
}

/** A counter as a linearizable store has it; on the way to it and back, time passes. */
function strictSource(d: Dice): FencingSource {
  let last = 0n;
  return {
    async next() {
      await sleep(d.between(0, 10));
      const token = (last += 1n);
      await sleep(d.between(0, 10));
      return token;
    },
  };
}

/** Acquires by turns as a handle (with and without watchdog) and by value, which it may renew too late. */
async function client(
  lock: QuorumLock,
  name: string,
  key: string,
  d: Dice,
  { leaseMs, exclusion, failed, going, fencing }: ClientContext,
): Promise<void> {
  const stayMs = Math.min(leaseMs, LONGEST_STAY_MS);
  while (going()) {
    await sleep(d.between(0, stayMs / 4));
    if (d.random() < 0.6) {
      const watchdog = d.random() < 0.5;
      const held = await lock
        .acquire(key, { leaseMs, watchdog, waitMs: stayMs, retryIntervalMs: 10, fencing })
        .catch(() => null);
      if (held === null) continue;
      const stay = exclusion.enter(name, key, held.isHeld, held.token);
      await sleep(d.between(0, stayMs * (d.random() < 0.5 ? 0.2 : 1.5)));
      await held.release();
      stay.leave();
      continue;
    }
    // A value of its own for each attempt: what one that failed has left behind is to be seen.
    let value = randomUUID();
    let result = await lock.tryAcquire(key, value, leaseMs);
    for (let tries = 25; result.outcome !== "acquired" && tries > 0 && going(); tries -= 1) {
      failed.add(value);
      await sleep(d.between(5, 35));
      value = randomUUID();
      result = await lock.tryAcquire(key, value, leaseMs);
    }
    if (result.outcome !== "acquired") {
      failed.add(value);
      continue;
    }
    let { grant } = result;
    const stay = exclusion.enter(name, key, () => grant.isValid());
    for (let i = d.below(4); i > 0 && going(); i -= 1) {
      await sleep(d.between(0, stayMs * 3));
      const renewed = await lock.extend(key, value, leaseMs);
      if (renewed.outcome === "lost") break;
      if (renewed.outcome !== "renewed") continue;
      grant = renewed.grant;
      stay.renewed();
    }
    stay.leave();
    await lock.release(key, value, leaseMs);
  }
}

async function breakThings(
  { servers, faults, seed, leaseMs }: RunOptions,
  proxies: readonly FaultProxy[][],
  note: (event: string) => void,
  going: () => boolean,
): Promise<void> {
  const d = dice(seed);
  const wipe = async (i: number): Promise<void> => {
    note(`wipe ${i}`);
    await servers[i]!.wipe();
  };
  const breaks: Record<Fault, () => Promise<void>> = {
    async pause() {
      const i = d.below(servers.length);
      note(`pause ${i}`);
      servers[i]!.pause();
      await sleep(d.between(20, leaseMs));
      servers[i]!.resume();
    },
    async cut() {
      const c = d.below(CLIENTS);
      note(`cut client ${c}`);
      for (const proxy of proxies[c]!) if (d.random() < 0.5) proxy.cut();
    },
    async lossy() {
      const victims = proxies[d.below(CLIENTS)]!.filter(() => d.random() < 0.6);
      note("lose answers");
      for (const proxy of victims) proxy.faults.dropReplies = true;
      await sleep(d.between(20, 200));
      for (const proxy of victims) proxy.faults.dropReplies = false;
      // Answers do not find their questions any more after a gap in the stream.
      for (const proxy of victims) proxy.cut();
    },
    async delay() {
      const c = d.below(CLIENTS);
      note(`delay client ${c}`);
      for (const proxy of proxies[c]!) proxy.faults.delayMs = 150;
      await sleep(d.between(leaseMs, leaseMs * 2));
      for (const proxy of proxies[c]!) proxy.faults.delayMs = 0;
    },
    wipe: async () => wipe(d.below(servers.length)),
    async bareMajorityThenWipe() {
      const order = servers.map((_, i) => i).toSorted(() => d.random() - 0.5);
      const away = order.slice(0, 2);
      note(`pause ${away.join()}`);
      for (const i of away) servers[i]!.pause();
      await sleep(d.between(leaseMs / 2, leaseMs));
      await wipe(order[2]!);
      for (const i of away) servers[i]!.resume();
      await sleep(leaseMs);
    },
  };
  while (going()) {
    await breaks[d.pick(faults)]();
    await sleep(d.between(5, 50));
  }
}

async function watchTtls(
  servers: readonly RedisServer[],
  key: string,
  leaseMs: number,
  bad: number[],
  going: () => boolean,
): Promise<void> {
  while (going()) {
    const server = servers[Math.floor(Math.random() * servers.length)]!;
    const ttl = await Promise.race([
      server.command("PTTL", key).then(Number, () => -2),
      sleep(50, -2),
    ]);
    if (ttl === -1 || ttl > leaseMs) bad.push(ttl);
    await sleep(20);
  }
}

/** Values of failed attempts that do not go away by themselves within seconds. */
async function leftOver(
  servers: readonly RedisServer[],
  key: string,
  failed: ReadonlySet<string>,
): Promise<string[]> {
  const look = async (): Promise<string[]> => {
    const values = await Promise.all(servers.map((server) => server.command("GET", key)));
    return values.filter((v): v is string => typeof v === "string" && failed.has(v));
  };
  const deadline = performance.now() + 5_000;
  for (;;) {
    const left = await look();
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(20);
  }
}
