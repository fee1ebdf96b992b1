import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { driftOf, LockConfigError, LockLostError, NotAcquiredError } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { freshKey, freshValue, redisBed } from "./fixture.ts";

const bed = redisBed(5);
const FAST = { nodeTimeoutMs: 2_000, heartbeatMs: 100, reconnectMaxMs: 50 };
const LONG = { leaseMs: 30_000 };
/** For nodes that are made to hang. */
const IMPATIENT = { ...FAST, nodeTimeoutMs: 400 };
const everywhere = (key: string, value: string | null) =>
  until(
    `${value} everywhere`,
    () => bed.values(key),
    (all) => all.every((v) => v === value),
  );

async function refusal(attempt: Promise<unknown>): Promise<NotAcquiredError> {
  const error = await attempt.then(
    () => new Error("was acquired"),
    (e: unknown) => e,
  );
  if (error instanceof NotAcquiredError) return error;
  throw error;
}

function aborted(signal: AbortSignal): Promise<LockLostError> {
  return new Promise((resolve) => {
    const done = () => resolve(signal.reason as LockLostError);
    if (signal.aborted) done();
    else signal.addEventListener("abort", done, { once: true });
  });
}

describe("acquire", () => {
  it("holds until it is released, renewed by the watchdog beyond its lease", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const held = await lock.acquire(key, { leaseMs: 3_000, watchdog: true });
    const began = performance.now();
    await until("two and a half leases later", () => performance.now() - began > 7_500);
    expect(held.isHeld()).toBe(true);
    expect(held.signal.aborted).toBe(false);
    expect(await held.release()).toBe("released");
    expect(held.isHeld()).toBe(false);
    await everywhere(key, null);
  });

  it("lives for thirty seconds unless told otherwise, and is renewed when a third of that has passed", async () => {
    let time = Date.now();
    const clock = { now: () => time, monotonic: () => time };
    const lock = await bed.lock({ ...FAST, clock });
    const [watched, given] = [await lock.acquire(freshKey()), await lock.acquire(freshKey(), LONG)];
    const valid = 30_000 - driftOf(30_000);
    expect(watched.remainingMs()).toBe(valid);
    time += 10_000;
    await until("renewed", () => watched.remainingMs() === valid);
    expect(given.remainingMs()).toBe(valid - 10_000);
    await Promise.all([watched.release(), given.release()]);
  });

  it("with an explicit lease ends on time, and the signal says so", async () => {
    const lock = await bed.lock(FAST);
    const held = await lock.acquire(freshKey(), { leaseMs: 1_000 });
    const error = await aborted(held.signal);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.reason).toBe("deadline");
    expect(held.isHeld()).toBe(false);
    expect(held.remainingMs()).toBe(0);
    expect(await held.release()).toBe("expired");
  });

  it("with maxHoldMs is renewed no longer than that", async () => {
    const lock = await bed.lock(FAST);
    const held = await lock.acquire(freshKey(), {
      leaseMs: 3_000,
      watchdog: true,
      maxHoldMs: 4_500,
    });
    const began = performance.now();
    expect((await aborted(held.signal)).reason).toBe("maxHold");
    expect(performance.now() - began).toBeGreaterThan(4_490);
  });

  it("waits for the holder, and takes over when it releases", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const first = await lock.acquire(key);
    const second = lock.acquire(key, { waitMs: 10_000, retryIntervalMs: 20 });
    await first.release();
    const held = await second;
    expect(held.isHeld()).toBe(true);
    await held.release();
  });

  it("takes over from a holder that died, within its lease and one retry", async () => {
    const dead = await bed.lock(FAST);
    const lock = await bed.lock(FAST);
    const key = freshKey();
    await dead.tryAcquire(key, freshValue(), 1_000);
    await dead.close();
    const held = await lock.acquire(key, { waitMs: 10_000, retryIntervalMs: 20 });
    expect(held.isHeld()).toBe(true);
    await held.release();
  });

  it("gives up when the wait is over, and says who has it and what each node said", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const first = await lock.acquire(key, { value: "the-holder" });
    const error = await refusal(lock.acquire(key, { waitMs: 1_000, retryIntervalMs: 20 }));
    expect(error).toMatchObject({ reason: "held", key, holder: { value: "the-holder" } });
    expect(error.perNode).toHaveLength(5);
    expect(error.tries).toBeGreaterThan(1);
    expect(error.waitedMs).toBeGreaterThanOrEqual(999);
    expect((await refusal(lock.acquire(key))).tries).toBe(1);
    expect(await lock.tryLock(key)).toBeNull();
    await first.release();
  });

  it("names a missing majority", async () => {
    const lock = await bed.lock(FAST);
    await Promise.all([0, 1, 2].map((i) => bed.servers[i]!.kill()));
    const error = await refusal(lock.acquire(freshKey(), { waitMs: 50 }));
    expect(error.reason).toBe("noQuorum");
    expect(error.message).toMatch(/too few nodes answered/);
    expect(await refusal(lock.tryLock(freshKey()))).toMatchObject({ reason: "noQuorum" });
  });

  it("names an unsafe majority", async () => {
    for (const server of bed.servers.slice(0, 3)) {
      await server.command("CONFIG", "SET", "maxmemory", "100mb");
      await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    }
    const lock = await bed.lock(FAST);
    const error = await refusal(lock.acquire(freshKey()));
    for (const server of bed.servers.slice(0, 3)) {
      await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
      await server.command("CONFIG", "SET", "maxmemory", "0");
    }
    expect(error.reason).toBe("unsafe");
  });

  it("can be aborted while it waits and while its sets are under way, and leaves nothing", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const first = await lock.acquire(key);
    const waiting = new AbortController();
    const attempt = lock.acquire(key, { waitMs: 60_000, signal: waiting.signal });
    waiting.abort(new Error("no longer wanted"));
    expect(await refusal(attempt)).toMatchObject({ reason: "aborted" });
    await first.release();

    const flying = new AbortController();
    const second = lock.acquire(key, { signal: flying.signal });
    expect(getEventListeners(flying.signal, "abort")).toHaveLength(1);
    flying.abort();
    expect((await refusal(second)).reason).toBe("aborted");
    await everywhere(key, null);
    expect(getEventListeners(waiting.signal, "abort")).toEqual([]);
    expect(getEventListeners(flying.signal, "abort")).toEqual([]);
  });

  it("listens to a signal no longer than it tries", async () => {
    const lock = await bed.lock(FAST);
    const { signal } = new AbortController();
    const held = await lock.acquire(freshKey(), { signal });
    await refusal(lock.acquire(held.keys[0]!, { signal, waitMs: 60, retryIntervalMs: 20 }));
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await held.release();
  });

  it.each([
    { leaseMs: 10 },
    { leaseMs: NaN },
    { waitMs: -1 },
    { waitMs: NaN },
    { retryIntervalMs: Infinity },
    { value: "" },
  ])("refuses %j before anything is sent", async (options) => {
    const lock = await bed.lock(FAST);
    await expect(lock.acquire(freshKey(), options)).rejects.toThrow(LockConfigError);
  });
});

describe("loss", () => {
  it("is signalled at the deadline although every node hangs", async () => {
    const lock = await bed.lock(IMPATIENT);
    const held = await lock.acquire(freshKey(), { leaseMs: 1_500, watchdog: true });
    for (const server of bed.servers) server.pause();
    const error = await aborted(held.signal);
    expect(error.reason).toBe("deadline");
    expect(held.isHeld()).toBe(false);
  });

  it("does not follow from one renewal that fails: the next one saves it", async () => {
    const lock = await bed.lock(IMPATIENT);
    const held = await lock.acquire(freshKey(), { leaseMs: 3_000, watchdog: true });
    const outcomes: string[] = [];
    for (const i of [0, 1, 2]) bed.servers[i]!.pause();
    await until("a renewal could not reach a majority", async () => {
      outcomes.push((await lock.extend(freshKey(), "x", 1_000)).outcome);
      return held.remainingMs() < 1_700;
    });
    for (const i of [0, 1, 2]) bed.servers[i]!.resume();
    await until(
      "renewed",
      () => held.remainingMs(),
      (left) => left > 2_000,
    );
    expect(held.signal.aborted).toBe(false);
    expect(outcomes).toContain("noQuorum");
    await held.release();
  });

  it("is seen when a majority has another value, and what is left is cleared", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const held = await lock.acquire(key, { leaseMs: 6_000, watchdog: true });
    await Promise.all(
      bed.servers.slice(0, 3).map((s) => s.command("SET", key, "thief", "PX", 60_000)),
    );
    const error = await aborted(held.signal);
    expect(error.reason).toBe("taken");
    expect(error.perNode.some((v) => v.outcome === "held" && v.holder === "thief")).toBe(true);
    await until(
      "cleared",
      () => bed.values(key),
      (all) => all.slice(3).every((v) => v === null),
    );
  });

  it("is terminal: nothing re-acquires under the old handle", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const held = await lock.acquire(key, { leaseMs: 1_000 });
    await aborted(held.signal);
    expect(() => held.assertHeld()).toThrow(LockLostError);
    expect(() => held.reenter()).toThrow(LockLostError);
    await expect(held.extend(1_000)).rejects.toThrow(LockLostError);
    await everywhere(key, null);
  });

  it("a forced release takes the lock from its holder, who learns of it", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const held = await lock.acquire(key, { leaseMs: 6_000, watchdog: true });
    expect((await lock.forceRelease(key)).outcome).toBe("released");
    expect((await lock.forceRelease(key)).outcome).toBe("expired");
    expect((await aborted(held.signal)).reason).toBe("taken");
  });

  it("is seen by isHeld at once when the wall clock jumps over the lease", async () => {
    let ahead = 0;
    const lock = await bed.lock({
      ...FAST,
      clock: { now: () => Date.now() + ahead, monotonic: () => performance.now() },
    });
    const held = await lock.acquire(freshKey());
    expect(held.isHeld()).toBe(true);
    ahead = 60_000;
    expect(held.isHeld()).toBe(false);
    expect((await aborted(held.signal)).reason).toBe("deadline");
  });
});

describe("re-entrance", () => {
  it("counts: an inner release does not unlock", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const outer = await lock.acquire(key);
    const middle = outer.reenter();
    const inner = middle.reenter();
    expect(await inner.release()).toBe("released");
    expect(await inner.release()).toBe("released");
    expect(inner.isHeld()).toBe(false);
    expect(() => inner.assertHeld()).toThrow(/released before/);
    expect(() => inner.reenter()).toThrow(LockLostError);
    await expect(inner.extend(1_000)).rejects.toThrow(LockLostError);
    expect(outer.isHeld()).toBe(true);
    await outer.release();
    expect(middle.isHeld()).toBe(true);
    await everywhere(key, middle.value);
    await middle.release();
    await everywhere(key, null);
  });

  it("is explicit: another acquisition in the same process is another owner", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    await using held = await lock.acquire(key);
    expect(await lock.tryLock(key)).toBeNull();
    expect(held.isHeld()).toBe(true);
  });
});

describe("using", () => {
  it("releases after the work, also when it throws", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    expect(await lock.using(key, {}, async (_, held) => held.isHeld())).toBe(true);
    await everywhere(key, null);
    await expect(
      lock.using(key, {}, async () => {
        throw new Error("the work failed");
      }),
    ).rejects.toThrow("the work failed");
    await everywhere(key, null);
  });

  it("tells the work, and whoever called, that the lock was lost", async () => {
    const lock = await bed.lock(FAST);
    let told: unknown;
    const run = lock.using(freshKey(), { leaseMs: 1_000 }, async (signal) => {
      told = await aborted(signal);
    });
    await expect(run).rejects.toThrow(LockLostError);
    expect(told).toBeInstanceOf(LockLostError);
  });
});

describe("multi", () => {
  it("takes all or none, in any order of the callers, without a deadlock", async () => {
    const lock = await bed.lock(FAST);
    const [a, b] = [freshKey(), freshKey()];
    let inside = 0;
    let most = 0;
    const job = (keys: string[]) =>
      lock.using(keys, { waitMs: 30_000, retryIntervalMs: 5 }, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
        inside -= 1;
      });
    await Promise.all(Array.from({ length: 10 }, (_, i) => job(i % 2 === 0 ? [a, b] : [b, a])));
    expect(most).toBe(1);
    await everywhere(a, null);
    await everywhere(b, null);
  });

  it("gives back what it got when one is taken", async () => {
    const lock = await bed.lock(FAST);
    const [free, taken] = [freshKey(), freshKey()];
    const other = await lock.acquire(taken);
    const error = await refusal(lock.multi([free, taken]));
    expect(error).toMatchObject({ reason: "held", key: taken });
    await everywhere(free, null);
    await other.release();
  });

  it("is lost as a whole when one key is lost", async () => {
    const lock = await bed.lock(FAST);
    const [a, b] = [freshKey(), freshKey()];
    const held = await lock.multi([a, b, a], { leaseMs: 6_000, watchdog: true });
    expect(held.keys).toHaveLength(2);
    await Promise.all(bed.servers.map((s) => s.command("DEL", b)));
    expect((await aborted(held.signal)).reason).toBe("taken");
    await everywhere(a, null);
  });

  it.each([Number.NaN, 0, -1])("a longest hold of %s ms is refused", async (maxHoldMs) => {
    const lock = await bed.lock(FAST);
    await expect(lock.acquire(freshKey(), { maxHoldMs })).rejects.toThrow(/maxHoldMs: /);
  });

  it("of nothing is refused, and so is one token for several keys", async () => {
    const lock = await bed.lock(FAST);
    const fencing = lock.counter();
    await expect(lock.multi([freshKey(), freshKey()], { fencing })).rejects.toThrow(/fencing: /);
    await expect(lock.multi([])).rejects.toThrow(/keys: is empty/);
  });
});

describe("fencing tokens", () => {
  it("a source that hangs gives the lock back, when its lease is over or when nobody waits any more", async () => {
    const lock = await bed.lock(FAST);
    const fencing = { next: () => new Promise<bigint>(() => undefined) };
    const [key, other] = [freshKey(), freshKey()];
    const leased = lock.acquire(key, { fencing, leaseMs: 1_000, watchdog: true });
    await expect(leased).rejects.toThrow(/fencing: .* within the lease, 1000 ms/);
    await everywhere(key, null);
    const leaving = new AbortController();
    const left = lock.acquire(other, { fencing, signal: leaving.signal });
    await until("it is taken", async () => (await bed.values(other)).every((v) => v !== null));
    leaving.abort();
    expect(await refusal(left)).toMatchObject({ reason: "aborted" });
    await everywhere(other, null);
  });

  it("from the nodes' counter only increase, with nodes lost in between", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const fencing = lock.counter();
    const tokens: bigint[] = [];
    for (let i = 0; i < 30; i += 1) {
      if (i === 10) await Promise.all([0, 1].map((n) => bed.servers[n]!.kill()));
      if (i === 20) await bed.servers[0]!.start();
      const held = await lock.acquire(key, { fencing, waitMs: 5_000, retryIntervalMs: 10 });
      tokens.push(held.token!);
      await held.release();
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(30);
  });

  it("that cannot be had give the lock back", async () => {
    const lock = await bed.lock(FAST);
    const key = freshKey();
    const fencing = {
      next: async () => {
        throw new Error("no token today");
      },
    };
    await expect(lock.acquire(key, { fencing })).rejects.toThrow("no token today");
    await everywhere(key, null);
  });
});
