import { describe, expect, it } from "vitest";
import { until } from "../redis/facts.ts";
import { allUp, freshKey, freshValue, LEASE_MS, redisBed } from "./fixture.ts";

const bed = redisBed(5);
const FAST = { nodeTimeoutMs: 2_000, heartbeatMs: 200, reconnectMaxMs: 50 };
const urls = (count: number) => bed.servers.slice(0, count).map(({ url }) => url);

/** The node's clock jumps forward: what would have lived shorter is gone. */
async function clockJumps(i: number, key: string, ms: number): Promise<void> {
  const server = bed.servers[i]!;
  await server.command("PEXPIRE", key, Number(await server.command("PTTL", key)) - ms);
}

/** A lock on the first three only: the last two are stopped until it is there, and know nothing of it afterwards. */
async function onBareMajority<T>(acquire: () => Promise<T>, key: string): Promise<T> {
  for (const i of [3, 4]) bed.servers[i]!.pause();
  const got = await acquire();
  for (const i of [3, 4]) {
    bed.servers[i]!.resume();
    // What waited in the socket buffers of the stopped ones is executed first.
    await until("executed", async () => (await bed.servers[i]!.command("GET", key)) !== null);
    await bed.servers[i]!.command("DEL", key);
  }
  return got;
}

describe("rivals", () => {
  it("two against two on four nodes: neither has it, both take their votes back, and each gets it in turn", async () => {
    const lock = await bed.lock({ ...FAST, nodes: urls(4) });
    const key = freshKey();
    for (const i of [0, 1]) await bed.servers[i]!.command("SET", key, "rival", "PX", 60_000);
    const value = freshValue();
    expect(await lock.tryAcquire(key, value, LEASE_MS)).toMatchObject({
      outcome: "held",
      holder: null,
    });
    await until(
      "taken back",
      () => bed.values(key),
      (all) => !all.includes(value),
    );
    for (const i of [0, 1]) await bed.servers[i]!.command("DEL", key);
    const other = await bed.lock({ ...FAST, nodes: urls(4) });
    const turns = [lock, other].map(async (one) => {
      const held = await one.acquire(key, { waitMs: 30_000, retryIntervalMs: 10 });
      await held.release();
    });
    await Promise.all(turns);
  });

  it("three with one node each at first: all get it in turn", async () => {
    const key = freshKey();
    const locks = await Promise.all(
      [0, 1, 2].map(async (mine) => {
        const proxies = await Promise.all([0, 1, 2].map((i) => bed.proxy(i)));
        const lock = await bed.lock({ ...FAST, nodes: proxies.map(({ url }) => url) });
        await allUp(lock);
        for (const [i, proxy] of proxies.entries()) proxy.faults.delayMs = i === mine ? 0 : 30;
        return lock;
      }),
    );
    const first = await Promise.all(
      locks.map(async (lock) => lock.tryAcquire(key, freshValue(), LEASE_MS)),
    );
    expect(first.map(({ outcome }) => outcome)).toEqual(["held", "held", "held"]);
    let inside = 0;
    await Promise.all(
      locks.map((lock) =>
        lock.using(key, { waitMs: 40_000, retryIntervalMs: 50 }, async () => {
          inside += 1;
          expect(inside).toBe(1);
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
          inside -= 1;
        }),
      ),
    );
  });

  it("an acquisition that waits gives up although every node hangs", async () => {
    const lock = await bed.lock({ ...FAST, nodeTimeoutMs: 200 });
    for (const server of bed.servers) server.pause();
    await expect(lock.acquire(freshKey(), { waitMs: 300 })).rejects.toMatchObject({
      reason: "noQuorum",
    });
  });
});

describe("the clock of a node", () => {
  it("jumps by a minute: one of five does not matter, and the next renewal mends it", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const held = await lock.acquire(key, { leaseMs: 20_000 });
    await until("everywhere", async () => (await bed.values(key)).every((v) => v === held.value));
    await clockJumps(0, key, 60_000);
    expect(await (await bed.lock(FAST)).tryLock(key)).toBeNull();
    await held.extend(20_000);
    await until("healed", async () => (await bed.values(key)).every((v) => v === held.value));
    await held.release();
  });

  it("jumps where two majorities meet: both hold it, and only the token tells them apart", async () => {
    let token = 0n;
    const fencing = { next: async () => (token += 1n) };
    let highest = 0n;
    const write = (of: bigint | undefined): boolean => {
      if (of === undefined || of < highest) return false;
      highest = of;
      return true;
    };
    const [a, b] = [await bed.lock({ ...FAST, nodeTimeoutMs: 500 }), await bed.lock(FAST)];
    const key = freshKey();
    const first = await onBareMajority(() => a.acquire(key, { leaseMs: 60_000, fencing }), key);
    await clockJumps(2, key, 120_000);
    await allUp(b);
    const second = await b.acquire(key, { leaseMs: 60_000, fencing });
    expect([first.isHeld(), second.isHeld()]).toEqual([true, true]);
    expect([write(second.token), write(first.token)]).toEqual([true, false]);
    // The first one learns of it when it renews.
    await allUp(a);
    await expect(first.extend(60_000)).rejects.toMatchObject({ reason: "taken" });
    await second.release();
  });
});

describe("fencing tokens", () => {
  it("increase ten thousand times, while nodes are killed and come back empty", async () => {
    const lock = await bed.lock({ ...FAST, nodeTimeoutMs: 5_000 });
    const counter = lock.counter();
    const key = freshKey();
    const done = new AbortController();
    let last = 0n;
    const kills = (async () => {
      for (let i = 0; !done.signal.aborted; i = (i + 1) % 5) {
        await bed.servers[i]!.wipe();
        await allUp(lock);
        // It is told the highest number with the next token: only then may the next node forget.
        const before = last;
        await until("another token", () => done.signal.aborted || last > before + 2n);
      }
    })();
    try {
      for (let i = 0; i < 10_000; i += 1) {
        const token = await counter.next(key);
        expect(token).toBeGreaterThan(last);
        last = token;
      }
    } finally {
      done.abort();
      await kills;
    }
  });
});
