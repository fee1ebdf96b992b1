import { readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { QuorumLock, QuorumLockOptions } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { type RedisServer, startRedis } from "../redis/server.ts";
import { freshKey, freshValue, LEASE_MS, redisBed } from "./fixture.ts";

const bed = redisBed(2);
const FAST = { nodeTimeoutMs: 2_000, heartbeatMs: 200, reconnectMaxMs: 50, factsMs: 200 };

/** A lock over one server of the test's own and two that are well. */
async function besideGoodOnes(
  args: readonly string[],
  run: (lock: QuorumLock, server: RedisServer) => Promise<void>,
  options: Partial<QuorumLockOptions> = FAST,
): Promise<void> {
  const server = await startRedis({ args });
  try {
    const nodes = [server.url, ...bed.servers.map(({ url }) => url)];
    await run(await bed.lock({ ...options, nodes }), server);
  } finally {
    await server.stop();
  }
}

/** What the server of the test's own says to an acquisition that the others grant. */
async function saidBy(lock: QuorumLock, server: RedisServer): Promise<unknown> {
  const other = bed.servers[1]!;
  // Without the third one the first must be waited for.
  other.pause();
  const { perNode } = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
  other.resume();
  await until("the other is back", () => lock.health().nodes[2]?.state === "up");
  const verdict = perNode[0]!;
  expect(verdict.node).toBe(`127.0.0.1:${server.port}`);
  return "reason" in verdict ? verdict.reason : verdict.outcome;
}

describe("a node in trouble has no say, and the others go on", () => {
  it("NOREPLICAS: it wants replicas that it does not have", async () => {
    await besideGoodOnes([], async (lock, server) => {
      await server.command("CONFIG", "SET", "min-replicas-to-write", 1);
      expect(await saidBy(lock, server)).toBe("NOREPLICAS");
      expect((await lock.tryAcquire(freshKey(), "v", LEASE_MS)).outcome).toBe("acquired");
      await server.command("CONFIG", "SET", "min-replicas-to-write", 0);
      expect(await saidBy(lock, server)).toBe("yes");
    });
  });

  it("MISCONF: it cannot save its data", async () => {
    await besideGoodOnes(["--save", "3600 1"], async (lock, server) => {
      rmSync(server.dir, { recursive: true });
      await server.command("SET", "x", "y");
      await server.command("BGSAVE");
      await until("the save has failed", async () =>
        /rdb_last_bgsave_status:err/.test(String(await server.command("INFO", "persistence"))),
      );
      expect(await saidBy(lock, server)).toBe("MISCONF");
      expect((await lock.tryAcquire(freshKey(), "v", LEASE_MS)).outcome).toBe("acquired");
    });
  });

  it("BUSY: somebody's script runs for ever", async () => {
    await besideGoodOnes(["--lua-time-limit", "5"], async (lock, server) => {
      const endless = server.command("EVAL", "while true do end", 0).catch((e: unknown) => e);
      await until("it says so", async () =>
        server.command("PING").then(
          () => false,
          (error: unknown) => (error as Error).message.startsWith("BUSY"),
        ),
      );
      expect(await saidBy(lock, server)).toBe("BUSY");
      expect((await lock.tryAcquire(freshKey(), "v", LEASE_MS)).outcome).toBe("acquired");
      await server.command("SCRIPT", "KILL");
      await endless;
      await until("up", () => lock.health().nodes[0]?.state === "up");
      expect(await saidBy(lock, server)).toBe("yes");
    });
  });

  it("MASTERDOWN: it has become a replica whose master is gone", async () => {
    // Nothing but the acquisition looks at it.
    const blind = { ...FAST, heartbeatMs: 60_000, factsMs: 60_000 };
    const run = async (lock: QuorumLock, server: RedisServer) => {
      await server.command("REPLICAOF", "127.0.0.1", 1);
      expect(await saidBy(lock, server)).toBe("MASTERDOWN");
      expect((await lock.tryAcquire(freshKey(), "v", LEASE_MS)).outcome).toBe("acquired");
      await until("down", () => lock.health().nodes[0]?.state === "down");
      await server.command("REPLICAOF", "NO", "ONE");
      await until("back", () => lock.health().nodes[0]?.state !== "down");
    };
    await besideGoodOnes(["--replica-serve-stale-data", "no"], run, blind);
  });

  it("LOADING: it reads its data after a restart", async () => {
    const slow = ["--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"];
    await besideGoodOnes(slow, async (lock, server) => {
      await server.command("DEBUG", "POPULATE", 3_000);
      await server.command("SAVE");
      const reasons: unknown[] = [];
      lock.onHealth(({ nodes }) => reasons.push(nodes[0]?.reason));
      await server.restart();
      await until("seen", () => reasons.includes("LOADING"));
      expect((await lock.tryAcquire(freshKey(), "v", LEASE_MS)).outcome).toBe("acquired");
      await until("loaded", () => lock.health().nodes[0]?.state === "up");
    });
  });
});

describe("a node that comes back with older data", () => {
  const state = (lock: QuorumLock) => lock.health().nodes[0]?.state;

  it("as after a power failure (the end of its append-only file is gone) is quarantined", async () => {
    await besideGoodOnes(["--appendonly", "yes"], async (lock, server) => {
      const [key, value] = [freshKey(), freshValue()];
      await lock.tryAcquire(key, value, LEASE_MS);
      await until("there", async () => (await server.command("GET", key)) === value);
      await server.kill();
      const folder = join(server.dir, "appendonlydir");
      const file = join(
        folder,
        readdirSync(folder).find((name) => name.endsWith(".incr.aof"))!,
      );
      truncateSync(file, statSync(file).size - 20);
      await server.start();
      await until("back", () => state(lock) === "quarantined");
      expect(await server.command("GET", key)).toBeNull();
    });
  });

  it("with a lock that was released since keeps nobody out, and sets no token back", async () => {
    await besideGoodOnes([], async (lock, server) => {
      const fencing = lock.counter();
      const key = freshKey();
      const first = await lock.acquire(key, { leaseMs: 60_000, fencing });
      await until("there", async () => (await server.command("GET", key)) === first.value);
      await server.command("SAVE");
      await first.release();
      const second = await lock.acquire(key, { fencing });
      await second.release();
      await server.restart();
      expect(await server.command("GET", key)).toBe(first.value);
      const third = await lock.acquire(key, { fencing, waitMs: 20_000, retryIntervalMs: 20 });
      expect([second.token! > first.token!, third.token! > second.token!]).toEqual([true, true]);
      await third.release();
    });
  });
});
