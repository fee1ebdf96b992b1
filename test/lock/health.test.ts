import { describe, expect, it } from "vitest";
import { createQuorumLock, describeHealth, type LockHealth } from "../../src/lock/index.ts";
import { scripts } from "../../src/lock/scripts.ts";
import { until } from "../redis/facts.ts";
import { freePort, startRedis } from "../redis/server.ts";
import { allUp, freshKey, freshValue, LEASE_MS, redisBed, takeStock } from "./fixture.ts";

const bed = redisBed(3);
const FAST = { nodeTimeoutMs: 500, heartbeatMs: 100, reconnectMaxMs: 100 };
const USER = ["--user", "app", "on", ">pw", "~*", "+@all"];
const others = () => bed.servers.slice(1).map(({ url }) => url);

describe("health", () => {
  it("names who is missing and why, and recovers when it is mended", async () => {
    const lock = await bed.lock(FAST);
    const seen: LockHealth[] = [];
    lock.onHealth((health) => seen.push(health));
    await allUp(lock);
    await bed.servers[1]!.kill();
    await until(
      "down",
      () => lock.health().nodes[1],
      (n) => n?.reason === "ECONNREFUSED",
    );
    expect(lock.health()).toMatchObject({ quorum: true, up: 2, needed: 2 });
    expect(describeHealth(lock.health())).toMatch(
      /^2 of 3 Redis nodes up \(2 needed\); 127\.0\.0\.1:\d+ ECONNREFUSED \(.+\)$/,
    );
    await bed.servers[2]!.kill();
    await until(
      "no quorum",
      () => lock.health().quorum,
      (quorum) => !quorum,
    );
    await bed.servers[1]!.start();
    await until("quorum", () => lock.health().quorum);
    expect(seen.map(({ up }) => up)).toEqual(expect.arrayContaining([2, 1]));
    await until(
      "a round trip measured",
      () => lock.health().nodes[1]?.rttMs,
      (rtt) => Number(rtt) > 0,
    );
  });

  it("an idle hung node is found by the heartbeat", async () => {
    const lock = await bed.lock(FAST);
    await allUp(lock);
    bed.servers[0]!.pause();
    await until(
      "down",
      () => lock.health().nodes[0]?.reason,
      (reason) => reason === "TIMEOUT",
    );
    expect(lock.health()).toMatchObject({ up: 2, quorum: true });
  });

  it.each([
    ["a wrong password", ["--requirepass", "right"], ":wrong@", "WRONGPASS"],
    ["no password", ["--requirepass", "right"], "", "NOAUTH"],
    ["cluster mode", ["--cluster-enabled", "yes"], "", "CLUSTER"],
    ["a replica", ["--replicaof", "127.0.0.1 1"], "", "READONLY"],
    ["a user without EVALSHA", [...USER, "-evalsha"], "app:pw@", "NOPERM"],
    ["a user without PEXPIRE", [...USER, "-pexpire"], "app:pw@", "NOPERM"],
    ["a user without GET", [...USER, "-get"], "app:pw@", "NOPERM"],
    [
      "a user without the keys",
      ["--user", "app", "on", ">pw", "~other:*", "+@all"],
      "app:pw@",
      "NOPERM",
    ],
    ["a user without INFO", [...USER, "-info"], "app:pw@", "NOPERM"],
  ])("%s is named, and the other nodes go on", async (_, args, login, reason) => {
    const server = await startRedis({ args });
    try {
      const lock = await bed.lock({
        ...FAST,
        nodes: [server.url.replace("//", `//${login}`), ...others()],
      });
      expect(lock.health().nodes[0]).toMatchObject({ state: "down", reason });
      expect(JSON.stringify(lock.health())).not.toMatch(/wrong@|pw|right/);
      expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    } finally {
      await server.stop();
    }
  });

  it("a name that does not resolve, and a port where nobody listens, are named", async () => {
    const lock = await bed.lock({
      ...FAST,
      nodes: [
        "redis://no-such-host.invalid",
        `redis://127.0.0.1:${await freePort()}`,
        others()[0]!,
      ],
    });
    const [first, second] = lock.health().nodes;
    expect(first?.reason).toMatch(/ENOTFOUND|EAI_AGAIN/);
    expect(second?.reason).toBe("ECONNREFUSED");
    expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("noQuorum");
  });

  it("logs in with user and password, and selects the database", async () => {
    const server = await startRedis({
      args: ["--user", "app", "on", ">p@ss", "~*", "+@all"],
      username: "app",
      password: "p@ss",
    });
    try {
      const lock = await bed.lock({ nodes: [`redis://app:p%40ss@127.0.0.1:${server.port}/3`] });
      await allUp(lock);
      expect(lock.warnings.map(({ code }) => code)).toEqual(["NoFaultTolerance"]);
      const key = freshKey();
      expect((await lock.tryAcquire(key, "v", LEASE_MS)).outcome).toBe("acquired");
      expect(await server.command("INFO", "keyspace")).toMatch(/db3:keys=2,expires=1/);
    } finally {
      await server.stop();
    }
  });

  it("a full memory refuses sets, and still renews and releases", async () => {
    const lock = await bed.lock(FAST);
    const [key, value] = [freshKey(), freshValue()];
    await lock.tryAcquire(key, value, LEASE_MS);
    await Promise.all(bed.servers.map((s) => s.command("CONFIG", "SET", "maxmemory", "1")));
    const result = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    const renewed = await lock.extend(key, value, LEASE_MS);
    const released = await lock.release(key, value);
    await Promise.all(bed.servers.map((s) => s.command("CONFIG", "SET", "maxmemory", "0")));
    expect(result.outcome).toBe("noQuorum");
    expect(result.perNode).toContainEqual(expect.objectContaining({ reason: "OOM" }));
    expect([renewed.outcome, released.outcome]).toEqual(["renewed", "released"]);
  });

  it("a flushed script cache costs one more round trip", async () => {
    const lock = await bed.lock(FAST);
    await allUp(lock);
    await Promise.all(bed.servers.map((s) => s.command("SCRIPT", "FLUSH")));
    const [key, value] = [freshKey(), freshValue()];
    expect((await lock.tryAcquire(key, value, LEASE_MS)).outcome).toBe("acquired");
    expect((await lock.release(key, value)).outcome).toBe("released");
  });

  it("nor does one that knows the release only: what was released before it was set is not set afterwards", async () => {
    const lock = await bed.lock({ ...FAST, nodeTimeoutMs: 10_000 });
    await allUp(lock);
    const warm = freshKey();
    await lock.tryAcquire(warm, "warm", LEASE_MS);
    await lock.release(warm, "warm");
    const late = bed.servers[2]!;
    await until("all asked", async () => (await bed.values(warm)).every((v) => v === null));
    await late.command("SCRIPT", "FLUSH");
    await late.command("SCRIPT", "LOAD", scripts.release.source);
    late.pause();
    const [key, value] = [freshKey(), freshValue()];
    expect((await lock.tryAcquire(key, value, LEASE_MS)).outcome).toBe("acquired");
    expect((await lock.release(key, value)).outcome).toBe("released");
    late.resume();
    // Behind what was sent anew, on the same connection.
    const next = freshKey();
    await lock.tryAcquire(next, "next", LEASE_MS);
    await until("the late one has the next", async () => (await bed.values(next))[2] === "next");
    expect(await bed.values(key)).toEqual([null, null, null]);
  });
});

describe("close", () => {
  it("leaves no socket and no timer, also with nodes hung, dead and never reached", async () => {
    const nothingLeft = takeStock();
    bed.servers[0]!.pause();
    const lock = createQuorumLock({
      ...FAST,
      nodes: [...bed.servers.map(({ url }) => url), `redis://127.0.0.1:${await freePort()}`],
    });
    await lock.ready();
    const attempt = lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    await lock.close();
    expect(await attempt).toHaveProperty("outcome");
    await nothingLeft();
    bed.servers[0]!.resume();
  });

  it("answers everything that comes after it as unavailable, and may be called twice", async () => {
    const lock = await bed.lock(FAST);
    await lock.close();
    await lock.close();
    const result = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    expect(result.outcome).toBe("noQuorum");
    expect(result.perNode[0]).toMatchObject({ outcome: "unavailable", reason: "CLOSED" });
    expect((await lock.release(freshKey(), freshValue())).outcome).toBe("unknown");
  });
});
