import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll } from "vitest";
import {
  createQuorumLock,
  type NodeVerdict,
  type QuorumLock,
  type QuorumLockOptions,
} from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import type { FaultProxy } from "../redis/proxy.ts";
import { startProxy } from "../redis/proxy.ts";
import { type RedisServer, startRedisNodes } from "../redis/server.ts";

export const LEASE_MS = 10_000;
/** One list for all tests of a bed, though they reach its servers by the addresses of many proxies. */
export const LIST = "bed";

export interface Bed {
  /** Filled before the first test. */
  readonly servers: RedisServer[];
  /** A lock over the servers, or over other URLs; closed after the test. */
  lock(options?: Partial<QuorumLockOptions>): Promise<QuorumLock>;
  /** A proxy in front of server i; closed after the test. */
  proxy(i: number): Promise<FaultProxy>;
  /** The value on each server that runs, null where there is none. */
  values(key: string): Promise<unknown[]>;
}

/** Real servers for all tests of a file; each test leaves them running, whatever it did to them. */
export function redisBed(count: number): Bed {
  const servers: RedisServer[] = [];
  const locks: QuorumLock[] = [];
  const proxies: FaultProxy[] = [];

  beforeAll(async () => {
    servers.push(...(await startRedisNodes(count)));
  });
  afterEach(async () => {
    await Promise.all(locks.splice(0).map((lock) => lock.close()));
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
    for (const server of servers) {
      server.resume();
      if (!server.alive()) await server.start();
    }
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  return {
    servers,
    async lock(options = {}) {
      const lock = createQuorumLock({
        nodes: servers.map(({ url }) => url),
        listId: LIST,
        ...options,
      });
      locks.push(lock);
      // Up or down for a reason: a node that is still connecting would make the facts of a test vary.
      await until("every node tried", () =>
        lock.health().nodes.every((n) => n.state !== "connecting"),
      );
      return lock;
    },
    async proxy(i) {
      const proxy = await startProxy(() => servers[i]!.port);
      proxies.push(proxy);
      return proxy;
    },
    values: (key) => Promise.all(servers.map((server) => server.command("GET", key))),
  };
}

const RESOURCES = ["TCPSocketWrap", "TCPConnectWrap", "TCPServerWrap", "Timeout"] as const;

function resources(): Record<string, number> {
  const all = process.getActiveResourcesInfo();
  return Object.fromEntries(RESOURCES.map((kind) => [kind, all.filter((k) => k === kind).length]));
}

/** Takes stock of sockets and timers. @returns what waits until there are no more of them than now */
export function takeStock(): () => Promise<unknown> {
  const before = resources();
  return () =>
    until("no socket and no timer left", resources, (now) =>
      RESOURCES.every((kind) => (now[kind] ?? 0) <= (before[kind] ?? 0)),
    );
}

export const freshKey = () => `test:${randomUUID()}`;
export const freshValue = () => `run-${randomUUID()}`;

export function count(verdicts: readonly NodeVerdict[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of verdicts) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** All nodes are up for this lock. */
export async function allUp(lock: QuorumLock): Promise<void> {
  await until(
    "all nodes up",
    () => lock.health(),
    (health) => health.up === lock.nodes.length,
  );
}
