import { describe, expect, it } from "vitest";
import { until } from "../redis/facts.ts";
import { allUp, count, freshKey, freshValue, LEASE_MS, redisBed } from "./fixture.ts";

const bed = redisBed(5);
/** Short, so that what depends on it does not make the tests slow. */
const FAST = { nodeTimeoutMs: 500, heartbeatMs: 100, reconnectMaxMs: 100 };

describe("one or two nodes away", () => {
  it.each([
    ["killed", async (i: number) => bed.servers[i]!.kill()],
    ["stopped", async (i: number) => bed.servers[i]!.pause()],
  ])("%s: acquire, extend and release go on with the other three", async (_, harm) => {
    const lock = await bed.lock(FAST);
    await harm(0);
    await harm(3);
    for (let i = 0; i < 20; i += 1) {
      const [key, value] = [freshKey(), freshValue()];
      expect((await lock.tryAcquire(key, value, LEASE_MS)).outcome).toBe("acquired");
      expect((await lock.extend(key, value, LEASE_MS)).outcome).toBe("renewed");
      expect((await lock.release(key, value)).outcome).toBe("released");
    }
  });

  it("a hung node is asked no more until it answers again, and then votes again", async () => {
    const lock = await bed.lock(FAST);
    bed.servers[2]!.pause();
    await until(
      "noticed",
      () => lock.health().nodes[2]?.state,
      (state) => state === "down",
    );
    expect(lock.health().nodes[2]).toMatchObject({ reason: "TIMEOUT" });
    const result = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    expect(result.perNode[2]).toMatchObject({ outcome: "unavailable", reason: "TIMEOUT" });
    bed.servers[2]!.resume();
    await allUp(lock);
    expect((await lock.inspect(freshKey())).perNode[2]).toMatchObject({ outcome: "absent" });
  });
});

describe("the majority away", () => {
  it.each([
    ["killed", async (i: number) => bed.servers[i]!.kill()],
    ["stopped", async (i: number) => bed.servers[i]!.pause()],
  ])("%s: no quorum, nothing is left behind, and it recovers", async (_, harm) => {
    const lock = await bed.lock(FAST);
    await Promise.all([0, 1, 2].map(harm));
    const [key, value] = [freshKey(), freshValue()];
    const result = await lock.tryAcquire(key, value, LEASE_MS);
    expect(result).toMatchObject({ outcome: "noQuorum", reason: "nodes" });
    await until(
      "health says so",
      () => lock.health().quorum,
      (quorum) => !quorum,
    );
    for (const server of bed.servers) {
      server.resume();
      if (!server.alive()) await server.start();
    }
    await allUp(lock);
    await until(
      "no trace",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
    expect((await lock.tryAcquire(key, freshValue(), LEASE_MS)).outcome).toBe("acquired");
  });

  it("a release then says unknown at once, and the keys go when the nodes return", async () => {
    const lock = await bed.lock(FAST);
    const [key, value] = [freshKey(), freshValue()];
    await lock.tryAcquire(key, value, 60_000);
    await until(
      "everywhere",
      () => bed.values(key),
      (all) => all.every((v) => v === value),
    );
    for (const i of [0, 1, 2]) bed.servers[i]!.pause();
    await until(
      "noticed",
      () => lock.health().up,
      (up) => up === 2,
    );
    expect((await lock.release(key, value, 60_000)).outcome).toBe("unknown");
    for (const i of [0, 1, 2]) bed.servers[i]!.resume();
    await until(
      "deleted",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
  });

  it("a renewal is neither renewed nor lost: it may be tried again", async () => {
    const lock = await bed.lock(FAST);
    const [key, value] = [freshKey(), freshValue()];
    await lock.tryAcquire(key, value, LEASE_MS);
    for (const i of [0, 1, 2]) bed.servers[i]!.pause();
    expect((await lock.extend(key, value, LEASE_MS)).outcome).toBe("noQuorum");
    for (const i of [0, 1, 2]) bed.servers[i]!.resume();
    await allUp(lock);
    expect((await lock.extend(key, value, LEASE_MS)).outcome).toBe("renewed");
  });

  it("a client in a minority partition gets nothing, the others go on", async () => {
    const away = await Promise.all([0, 1, 2].map((i) => bed.proxy(i)));
    const cutOff = await bed.lock({
      ...FAST,
      nodes: [...away.map(({ url }) => url), bed.servers[3]!.url, bed.servers[4]!.url],
    });
    const others = await bed.lock(FAST);
    for (const proxy of away) {
      proxy.faults.refuse = true;
      proxy.cut();
    }
    await until(
      "cut off",
      () => cutOff.health().up,
      (up) => up === 2,
    );
    const key = freshKey();
    expect((await cutOff.tryAcquire(key, "minority", LEASE_MS)).outcome).toBe("noQuorum");
    await until(
      "taken back",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
    expect((await others.tryAcquire(key, "majority", LEASE_MS)).outcome).toBe("acquired");
  });
});

describe("lost and late answers", () => {
  it("an acquisition whose answers were lost on three nodes leaves no key there", async () => {
    const proxies = await Promise.all([0, 1, 2].map((i) => bed.proxy(i)));
    const lock = await bed.lock({
      ...FAST,
      heartbeatMs: 60_000,
      nodes: [...proxies.map(({ url }) => url), bed.servers[3]!.url, bed.servers[4]!.url],
    });
    for (const proxy of proxies) proxy.faults.dropReplies = true;
    const [key, value] = [freshKey(), freshValue()];
    const attempt = lock.tryAcquire(key, value, 60_000);
    await until(
      "executed",
      () => bed.values(key),
      (all) => all[0] === value,
    );
    expect(await attempt).toMatchObject({ outcome: "noQuorum" });
    // Their answers are still lost: the deletes go behind the sets all the same.
    await until(
      "no trace",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
  });

  it("a set that lands after its connection died is deleted too", async () => {
    const lock = await bed.lock(FAST);
    const victims = [0, 1, 2].map((i) => bed.servers[i]!);
    for (const server of victims) server.pause();
    const [key, value] = [freshKey(), freshValue()];
    // Sent into the socket buffers of stopped processes, which execute it when they go on.
    expect((await lock.tryAcquire(key, value, 60_000)).outcome).toBe("noQuorum");
    await until(
      "connections given up",
      () => lock.health().up,
      (up) => up === 2,
    );
    for (const server of victims) server.resume();
    await allUp(lock);
    await until(
      "no trace",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
    const stats = await Promise.all(victims.map((s) => s.command("INFO", "commandstats")));
    for (const text of stats) expect(text).toMatch(/cmdstat_set:/);
  });

  it("slow nodes (5 s) cost nothing while a majority is fast", async () => {
    const slow = await Promise.all([0, 1].map((i) => bed.proxy(i)));
    const lock = await bed.lock({
      nodeTimeoutMs: 10_000,
      nodes: [...slow.map(({ url }) => url), ...bed.servers.slice(2).map(({ url }) => url)],
    });
    for (const proxy of slow) proxy.faults.delayMs = 5_000;
    const result = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    expect(result.outcome).toBe("acquired");
    // The slow ones had not answered when it was decided.
    expect(count(result.perNode)).toEqual({ yes: 3, unknown: 2 });
  });

  it("a held lock is told from a missing backend although two nodes are down", async () => {
    const lock = await bed.lock(FAST);
    const other = await bed.lock(FAST);
    const key = freshKey();
    await other.tryAcquire(key, "holder", LEASE_MS);
    await Promise.all([0, 1].map((i) => bed.servers[i]!.kill()));
    await until(
      "noticed",
      () => lock.health().up,
      (up) => up === 3,
    );
    expect(await lock.tryAcquire(key, freshValue(), LEASE_MS)).toMatchObject({
      outcome: "held",
      holder: { value: "holder", votes: 3 },
    });
  });

  it("garbage on one connection costs that connection, nothing else", async () => {
    const proxy = await bed.proxy(0);
    const lock = await bed.lock({
      ...FAST,
      nodes: [proxy.url, ...bed.servers.slice(1).map(({ url }) => url)],
    });
    proxy.faults.garbage = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const reasons: unknown[] = [];
    lock.onHealth(({ nodes }) => reasons.push(nodes[0]?.reason));
    expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    await until("noticed", () => reasons.includes("PROTOCOL"));
    await allUp(lock);
  });

  it("a stalled event loop makes no time-outs: answers that wait are read first", async () => {
    const lock = await bed.lock({ ...FAST, nodeTimeoutMs: 500 });
    const attempts = Array.from({ length: 20 }, () =>
      lock.tryAcquire(freshKey(), freshValue(), LEASE_MS),
    );
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    const until = performance.now() + 1_500;
    while (performance.now() < until);
    const results = await Promise.all(attempts);
    expect(results.map(({ outcome }) => outcome)).toEqual(Array(20).fill("acquired"));
  });

  it("a pause longer than the lease between the votes and the check is no lock", async () => {
    let ahead = 0;
    const clock = {
      now: () => Date.now() + ahead,
      monotonic: () => performance.now(),
    };
    const lock = await bed.lock({ ...FAST, clock });
    const [key, value] = [freshKey(), freshValue()];
    const attempt = lock.tryAcquire(key, value, LEASE_MS);
    ahead = LEASE_MS;
    expect(await attempt).toMatchObject({ outcome: "noQuorum", reason: "tooSlow" });
    await until(
      "taken back",
      () => bed.values(key),
      (all) => all.every((v) => v === null),
    );
  });
});
