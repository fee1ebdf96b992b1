import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../redis/facts.ts";
import { freshKey, redisBed } from "./fixture.ts";

/** node-redlock, as far as it is used here; its own types cannot be resolved through its exports. */
interface RedlockLock {
  release(): Promise<unknown>;
}
interface Redlock {
  acquire(keys: string[], leaseMs: number): Promise<RedlockLock>;
  on(event: "error", listener: () => void): void;
}
const { default: RedlockClass } = createRequire(import.meta.url)("redlock") as {
  default: new (clients: Redis[], options: object) => Redlock;
};

const bed = redisBed(5);
const LEASE_MS = 10_000;
let clients: Redis[];
let redlock: Redlock;

beforeAll(async () => {
  clients = bed.servers.map(({ port }) => new Redis({ port, host: "127.0.0.1" }));
  await Promise.all(clients.map((client) => client.ping()));
  redlock = new RedlockClass(clients, { retryCount: 0 });
  redlock.on("error", () => undefined);
});
afterAll(() => {
  for (const client of clients) client.disconnect();
});

describe("on the same keys as node-redlock", () => {
  it("its lock keeps ours out until it is released", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    const theirs = await redlock.acquire([key], LEASE_MS);
    expect(await lock.tryLock(key)).toBeNull();
    await theirs.release();
    const ours = await lock.acquire(key, { waitMs: 5_000, retryIntervalMs: 10 });
    expect(ours.isHeld()).toBe(true);
    await ours.release();
  });

  it("our lock keeps its out until it is released", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    const ours = await lock.acquire(key);
    await expect(redlock.acquire([key], LEASE_MS)).rejects.toThrow(/quorum|resource/i);
    await ours.release();
    await until(
      "free everywhere",
      () => bed.values(key),
      (all) => all.every((value) => value === null),
    );
    const theirs = await redlock.acquire([key], LEASE_MS);
    await expect(theirs.release()).resolves.toBeDefined();
  });
});
