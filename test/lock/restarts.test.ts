/** Restarts of several nodes at once, and what a holder and its rivals see of them. */
import { expect, it } from "vitest";
import type { LockHandle } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { allUp, freshKey, redisBed } from "./fixture.ts";

const bed = redisBed(5);
const LEASE_MS = 6_000;
const OPTIONS = {
  nodeTimeoutMs: 2_000,
  heartbeatMs: 100,
  reconnectMaxMs: 50,
  maxLeaseMs: LEASE_MS,
};
const WATCHED = { leaseMs: LEASE_MS, watchdog: true, waitMs: 20_000, retryIntervalMs: 20 };

/** What is known of the first holder at the moment that the second one gets the key. */
async function nextHolder(lock: Awaited<ReturnType<typeof bed.lock>>, first: LockHandle) {
  const second = await lock.acquire(first.keys[0]!, WATCHED);
  const seen = { held: first.isHeld(), told: first.signal.aborted };
  await second.release();
  return seen;
}

it("two nodes of five that restart empty within one renewal do not end a lock that all five have", async () => {
  const lock = await bed.lock(OPTIONS);
  await allUp(lock);
  const held = await lock.acquire(freshKey(), WATCHED);
  const { value } = held;
  await until("on all", async () => (await bed.values(held.keys[0]!)).every((v) => v === value));
  await Promise.all([bed.servers[0]!.wipe(), bed.servers[1]!.wipe()]);
  await until("healed by the next renewal", async () =>
    (await bed.values(held.keys[0]!)).every((v) => v === value),
  );
  expect([held.isHeld(), held.signal.aborted]).toEqual([true, false]);
  await allUp(lock);
  expect(await held.release()).toBe("released");
});

it("of the bare majority they end it, by its deadline, and before anybody else has it", async () => {
  const [a, b] = [await bed.lock(OPTIONS), await bed.lock(OPTIONS)];
  await allUp(b);
  await Promise.all([3, 4].map((i) => bed.servers[i]!.kill()));
  const held = await a.acquire(freshKey(), WATCHED);
  const { signal } = held;
  await Promise.all([0, 1].map((i) => bed.servers[i]!.wipe()));
  await Promise.all([3, 4].map((i) => bed.servers[i]!.start()));
  expect(await nextHolder(b, held)).toEqual({ held: false, told: true });
  expect(signal.reason).toMatchObject({ name: "LockLostError" });
});

it("all five that restart empty at once vote again when what they had granted is over", async () => {
  const [a, b] = [await bed.lock(OPTIONS), await bed.lock(OPTIONS)];
  await allUp(a);
  await allUp(b);
  const held = await a.acquire(freshKey(), WATCHED);
  const { signal } = held;
  await Promise.all(bed.servers.map((server) => server.wipe()));
  await until("all seen again", () => b.health().nodes.every((n) => n.state === "quarantined"));
  const early = await b.tryAcquire(held.keys[0]!, "early", LEASE_MS);
  expect(early.outcome).toBe("noQuorum");
  expect(await nextHolder(b, held)).toEqual({ held: false, told: true });
  expect(signal.reason).toMatchObject({ name: "LockLostError" });
});
