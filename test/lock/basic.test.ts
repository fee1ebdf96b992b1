import { describe, expect, it } from "vitest";
import { until } from "../redis/facts.ts";
import { startRedis } from "../redis/server.ts";
import { count, freshKey, freshValue, LEASE_MS, redisBed } from "./fixture.ts";

const bed = redisBed(5);

async function ownServer() {
  const server = await startRedis();
  return { server, [Symbol.asyncDispose]: () => server.stop() };
}

describe("acquire", () => {
  it("sets a plain string with a TTL on every node", async () => {
    const lock = await bed.lock();
    const [key, value] = [freshKey(), freshValue()];
    const result = await lock.tryAcquire(key, value, LEASE_MS);
    expect(result.outcome).toBe("acquired");
    await until(
      "on all nodes",
      () => bed.values(key),
      (all) => all.every((v) => v === value),
    );
    for (const server of bed.servers) {
      expect(await server.command("TYPE", key)).toBe("string");
      const pttl = Number(await server.command("PTTL", key));
      expect(pttl).toBeGreaterThan(0);
      expect(pttl).toBeLessThanOrEqual(LEASE_MS);
    }
  });

  it("is refused while somebody else holds it, and names the holder", async () => {
    const lock = await bed.lock();
    const other = await bed.lock();
    const [key, mine, theirs] = [freshKey(), freshValue(), freshValue()];
    await other.tryAcquire(key, theirs, LEASE_MS);
    const result = await lock.tryAcquire(key, mine, LEASE_MS);
    expect(result).toMatchObject({ outcome: "held", holder: { value: theirs } });
    await until(
      "no trace of the loser",
      () => bed.values(key),
      (all) => all.every((v) => v === theirs),
    );
  });

  it("takes its own value that is there already as a vote, with the new lease (self-block)", async () => {
    const lock = await bed.lock();
    const [key, value] = [freshKey(), freshValue()];
    for (const server of bed.servers.slice(0, 2))
      await server.command("SET", key, value, "PX", 500);
    const result = await lock.tryAcquire(key, value, LEASE_MS);
    expect(result.outcome).toBe("acquired");
    await until(
      "the new lease on the stale keys",
      () => bed.servers[0]!.command("PTTL", key),
      (pttl) => Number(pttl) > 5_000,
    );
  });

  it("has exactly one winner when many try at once, again and again", async () => {
    const locks = await Promise.all([bed.lock(), bed.lock(), bed.lock()]);
    for (let i = 0; i < 100; i += 1) {
      const key = freshKey();
      const results = await Promise.all(
        locks.flatMap((lock) => [0, 1, 2].map(() => lock.tryAcquire(key, freshValue(), LEASE_MS))),
      );
      const won = results.filter(({ outcome }) => outcome === "acquired");
      expect(won.length).toBeLessThanOrEqual(1);
      expect(results.every(({ outcome }) => outcome !== "noQuorum")).toBe(true);
    }
  });

  it("settles a split vote: the losers take their votes back, and a retry wins", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    for (const [i, server] of bed.servers.entries()) {
      if (i < 4) await server.command("SET", key, `foreign-${i % 2}`, "PX", 60_000);
    }
    const value = freshValue();
    const result = await lock.tryAcquire(key, value, LEASE_MS);
    expect(result).toMatchObject({ outcome: "held", holder: null });
    await until(
      "the vote taken back",
      () => bed.values(key),
      (all) => !all.includes(value),
    );
  });

  it("treats a key of another type as a misconfiguration, not as held", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    await Promise.all(bed.servers.map((server) => server.command("HSET", key, "a", "b")));
    const result = await lock.tryAcquire(key, freshValue(), LEASE_MS);
    expect(result.outcome).toBe("noQuorum");
    expect(result.perNode.find(({ outcome }) => outcome === "unavailable")).toMatchObject({
      reason: "WRONGTYPE",
    });
    // Waiting would not help.
    const error = await lock.acquire(key, { waitMs: 3_600_000 }).catch((e: unknown) => e);
    expect(error).toMatchObject({ name: "LockConfigError", code: "BadKey", field: "key" });
  });

  it("joins the calls of one turn, 128 in a command, without mixing up their answers", async () => {
    // Its own: what the locks of other tests still owe is counted on theirs.
    await using own = await ownServer();
    const lock = await bed.lock({ nodes: [own.server.url] });
    const commands = async () => {
      const stats = String(await own.server.command("INFO", "commandstats"));
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)![1]);
    };
    const taken = freshKey();
    await lock.tryAcquire(taken, "first", LEASE_MS);
    const before = await commands();
    const keys = Array.from({ length: 1000 }, (_, i) => (i % 10 === 0 ? taken : freshKey()));
    const results = await Promise.all(
      keys.map((key) => lock.tryAcquire(key, freshValue(), LEASE_MS)),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(
      keys.map((key) => (key === taken ? "held" : "acquired")),
    );
    await until("all asked", async () => (await commands()) >= before + 8);
    expect(await commands()).toBe(before + 8);
  });
});

describe("extend", () => {
  it("renews by value from anywhere, and gives it back to a node that lost it without counting that", async () => {
    const holder = await bed.lock();
    const other = await bed.lock();
    const [key, value] = [freshKey(), freshValue()];
    await holder.tryAcquire(key, value, 2_000);
    await until(
      "everywhere",
      () => bed.values(key),
      (all) => all.every((v) => v === value),
    );
    await bed.servers[4]!.command("DEL", key);
    const result = await other.extend(key, value, LEASE_MS);
    expect(result.outcome).toBe("renewed");
    await until(
      "healed",
      () => bed.values(key),
      (all) => all.every((v) => v === value),
    );
    for (const server of bed.servers) {
      expect(Number(await server.command("PTTL", key))).toBeGreaterThan(5_000);
    }
  });

  it("is lost when a majority forgot it: it does not vote itself back, and clears what is left", async () => {
    const lock = await bed.lock();
    const [key, value] = [freshKey(), freshValue()];
    await lock.tryAcquire(key, value, LEASE_MS);
    for (const server of bed.servers.slice(0, 3)) await server.command("DEL", key);
    const result = await lock.extend(key, value, LEASE_MS);
    expect(result).toMatchObject({ outcome: "lost", holder: null });
    await until(
      "cleared",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
  });

  it("is lost to another holder, who is named and left alone", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    await Promise.all(bed.servers.map((s) => s.command("SET", key, "thief", "PX", 60_000)));
    const result = await lock.extend(key, freshValue(), LEASE_MS);
    expect(result).toMatchObject({ outcome: "lost", holder: { value: "thief" } });
    expect(await bed.values(key)).toEqual(Array(5).fill("thief"));
  });

  it("handles many runs at once, each with its own result", async () => {
    const lock = await bed.lock();
    const entries = Array.from({ length: 500 }, () => ({
      key: freshKey(),
      value: freshValue(),
      leaseMs: LEASE_MS,
    }));
    await Promise.all(entries.map((e) => lock.tryAcquire(e.key, e.value, e.leaseMs)));
    const gone = entries.filter((_, i) => i % 7 === 0);
    for (const { key } of gone) await Promise.all(bed.servers.map((s) => s.command("DEL", key)));
    const results = await lock.extendMany(entries);
    expect(results.map(({ outcome }) => outcome)).toEqual(
      entries.map((_, i) => (i % 7 === 0 ? "lost" : "renewed")),
    );
  });
});

describe("release", () => {
  it("deletes its value everywhere, and frees the key for the next", async () => {
    const lock = await bed.lock();
    const [key, value] = [freshKey(), freshValue()];
    await lock.tryAcquire(key, value, LEASE_MS);
    expect((await lock.release(key, value)).outcome).toBe("released");
    await until(
      "gone",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
    expect((await lock.tryAcquire(key, freshValue(), LEASE_MS)).outcome).toBe("acquired");
  });

  it("never deletes somebody else's, and says expired", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    await lock.tryAcquire(key, "owner", LEASE_MS);
    const result = await lock.release(key, "not the owner");
    expect(result.outcome).toBe("expired");
    expect((await lock.inspect(key)).holder).toMatchObject({ value: "owner", votes: 5 });
  });

  it("during a renewal leaves nothing behind: no renewal brings the key back", async () => {
    const lock = await bed.lock();
    for (let i = 0; i < 50; i += 1) {
      const [key, value] = [freshKey(), freshValue()];
      await lock.tryAcquire(key, value, LEASE_MS);
      await bed.servers[i % 5]!.command("DEL", key);
      const renewal = lock.extend(key, value, LEASE_MS);
      expect((await lock.release(key, value)).outcome).toBe("released");
      await renewal;
      await until(
        "gone",
        () => bed.values(key),
        (all) => all.every((v) => v === null),
      );
    }
  });
});

describe("inspect", () => {
  it("names what each node has", async () => {
    const lock = await bed.lock();
    const key = freshKey();
    for (const server of bed.servers.slice(0, 3)) await server.command("SET", key, "x", "PX", 5000);
    await bed.servers[3]!.command("SET", key, "y");
    const { holder, perNode } = await lock.inspect(key);
    expect(holder).toMatchObject({ value: "x", votes: 3 });
    expect(count(perNode)).toEqual({ held: 4, absent: 1 });
    expect(perNode[3]).toMatchObject({ holder: "y", pttlMs: -1 });
  });
});
