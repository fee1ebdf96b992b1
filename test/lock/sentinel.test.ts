import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AcquireResult, QuorumLock } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { type SentinelGroup, startSentinelGroup } from "../redis/sentinel.ts";
import { startProxy } from "../redis/proxy.ts";
import { replay } from "../redis/replay.ts";
import type { RedisServer } from "../redis/server.ts";
import { freshKey, freshValue, redisBed } from "./fixture.ts";

const bed = redisBed(2);
const FAST = { nodeTimeoutMs: 500, heartbeatMs: 100, reconnectMaxMs: 100 };
const LEASE_MS = 2_000;
/** Longer than any test. */
const LONG_MS = 120_000;
let group: SentinelGroup;

beforeAll(async () => {
  group = await startSentinelGroup("main");
});
afterAll(async () => {
  await group.stop();
});

const node = (changes: object = {}) => ({
  sentinels: group.sentinels.map(({ url }) => url),
  masterName: group.masterName,
  ...changes,
});
const nodes = (changes: object = {}) => [node(changes), ...bed.servers.map(({ url }) => url)];
const first = (lock: QuorumLock) => lock.health().nodes[0];
const is = (lock: QuorumLock, ...states: string[]) =>
  until(
    states.join(" or "),
    () => first(lock)?.state ?? "",
    (state) => states.includes(state),
  );

/** Whoever is demoted may close its connections, also the one that asks it; it is asked on a new one then. */
const demoted = (server: RedisServer) =>
  until("the old one is a replica", async () =>
    /role:slave/.test(String(await server.command("INFO", "replication").catch(() => ""))),
  );

/** On the master and one of the others; the third has forgotten it at once. */
async function onBareMajority(lock: QuorumLock, key: string): Promise<AcquireResult> {
  const third = bed.servers[1]!;
  third.pause();
  const granted = await lock.tryAcquire(key, "A", LONG_MS);
  third.resume();
  await until("executed there", async () => (await third.command("GET", key)) === "A");
  await third.command("DEL", key);
  return granted;
}

/** As if the master had died before they heard of it. */
async function forgottenByReplicas(key: string): Promise<void> {
  const master = await group.master();
  for (const replica of group.servers.filter((server) => server !== master)) {
    await until("replicated", async () => (await replica.command("GET", key)) === "A");
    await replica.command("CONFIG", "SET", "replica-read-only", "no");
    await replica.command("DEL", key);
    await replica.command("CONFIG", "SET", "replica-read-only", "yes");
  }
}

describe("a master under Sentinel", () => {
  it("is one node of the lock, found through the sentinels", async () => {
    const lock = await bed.lock({ ...FAST, nodes: nodes() });
    expect(first(lock)).toMatchObject({ node: "main", state: "up" });
    const [key, value] = [freshKey(), freshValue()];
    expect((await lock.tryAcquire(key, value, LEASE_MS)).outcome).toBe("acquired");
    const master = await group.master();
    await until(
      "there",
      () => master.command("GET", key),
      (seen) => seen === value,
    );
  });

  it("is followed when Sentinel replaces it while it is alive, and the new one, which lost a vote, has none for a lease", async () => {
    const [a, b, lock] = await Promise.all(
      [1, 2, 3].map(() => bed.lock({ ...FAST, nodes: nodes() })),
    );
    await group.inSync();
    await b!.tryAcquire(freshKey(), freshValue(), LONG_MS);
    await lock!.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    const key = freshKey();
    const granted = await onBareMajority(a!, key);
    const before = first(lock!)?.facts?.runId;
    await forgottenByReplicas(key);
    const followed = (one: QuorumLock) =>
      until(
        "the new master, in quarantine",
        () => first(one),
        (seen) => seen?.state === "quarantined" && seen.facts?.runId !== before,
      );
    // Before it begins: the quarantine may be over when the last sentinel has heard of it.
    const following = followed(lock!);
    following.catch(() => undefined);
    const promoted = await group.failover();
    const quarantined = await following;
    expect(String(await promoted.command("INFO", "server"))).toContain(quarantined!.facts!.runId);
    expect((await lock!.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    await is(lock!, "up");

    await followed(b!);
    expect(await promoted.command("GET", key)).toBeNull();
    expect((await b!.tryAcquire(key, "B", LONG_MS)).outcome).toBe("held");
    expect(granted.outcome === "acquired" && granted.grant.isValid()).toBe(true);
  });

  it("that hangs is left when Sentinel has promoted another", async () => {
    const lock = await bed.lock({ ...FAST, nodes: nodes() });
    await group.inSync();
    const old = await group.master();
    const before = first(lock)?.facts?.runId;
    old.pause();
    try {
      // The sentinels may need more than one election, six seconds apart.
      await until(
        "another master",
        () => first(lock),
        (seen) => seen?.facts !== undefined && seen.facts.runId !== before,
        50_000,
      );
      expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    } finally {
      old.resume();
    }
    await demoted(old);
  });

  it("is found although one sentinel is dead and one hangs", async () => {
    const lock = await bed.lock({
      ...FAST,
      nodes: nodes({
        sentinels: [...group.sentinels.map(({ url }) => url), "redis://127.0.0.1:1"],
      }),
    });
    expect(first(lock)?.state).not.toBe("down");
    group.sentinels[1]!.pause();
    const another = await bed.lock({ ...FAST, nodes: nodes() });
    group.sentinels[1]!.resume();
    expect(first(another)?.state).not.toBe("down");
  });

  it("is found although a sentinel was cut off since before the failover, and another one is dead", async () => {
    const live = group.sentinels[0]!;
    const old = await group.master();
    const stale = await replay(live.port, ["SENTINEL", "MASTER", group.masterName]);
    const dead = "redis://127.0.0.1:1";
    try {
      await group.failover();
      const sentinels = [stale.url, dead, live.url];
      const lock = await bed.lock({ ...FAST, nodes: nodes({ sentinels }) });
      await is(lock, "up", "quarantined");
      const master = await group.master();
      expect(String(await master.command("INFO", "server"))).toContain(first(lock)!.facts!.runId);
      await demoted(old);
      // With nobody else to ask it is led to the old master, which does not vote.
      const alone = nodes({ sentinels: [stale.url, dead] });
      const misled = await bed.lock({ ...FAST, nodes: alone });
      expect(first(misled)).toMatchObject({ state: "down", reason: "READONLY" });
    } finally {
      await stale.close();
    }
  });

  it("is reached by another address where natMap says so", async () => {
    const master = await group.master();
    const proxy = await startProxy(() => master.port);
    try {
      const natMap = { [`127.0.0.1:${master.port}`]: `127.0.0.1:${proxy.port}` };
      const lock = await bed.lock({ ...FAST, nodes: nodes({ natMap }) });
      expect(first(lock)?.state).not.toBe("down");
      expect(proxy.connections).toBe(1);
      // Sentinel names the mapped address again and again; that is no failover.
      const before = first(lock)?.since;
      expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
      await until("asked again", () => first(lock)?.facts?.clockOffsetMs !== undefined);
      expect(first(lock)?.since).toBe(before);
    } finally {
      await proxy.close();
    }
  });

  it("with fewer replicas than have to vote is unsafe, and says so before the first lock", async () => {
    const lock = await bed.lock({ ...FAST, nodes: nodes({ waitReplicas: 3 }) });
    expect(first(lock)).toMatchObject({ state: "unsafe", reason: "NOREPLICAS" });
    expect(first(lock)?.message).toMatch(/waitReplicas asks for 3/);
    await expect(lock.check()).rejects.toMatchObject({ code: "BadNode" });
  });

  it("of a name that no sentinel knows is named as such", async () => {
    const lock = await bed.lock({ ...FAST, nodes: nodes({ masterName: "nobody", name: "x" }) });
    expect(first(lock)).toMatchObject({ state: "down", reason: "NOMASTER" });
    expect(first(lock)?.message).toMatch(/"nobody"/);
    await expect(lock.check()).rejects.toMatchObject({ code: "BadNode", field: "nodes[0]" });
  });

  it("with no sentinel there is named as such", async () => {
    const lock = await bed.lock({ ...FAST, nodes: nodes({ sentinels: ["redis://127.0.0.1:1"] }) });
    expect(first(lock)).toMatchObject({ state: "down", reason: "SENTINEL" });
    expect(first(lock)?.message).toMatch(/127\.0\.0\.1:1 ECONNREFUSED/);
  });

  it("votes only with its replicas when that is asked for", async () => {
    const lock = await bed.lock({ ...FAST, factsMs: 100, nodes: nodes({ waitReplicas: 2 }) });
    await is(lock, "up", "quarantined");
    await is(lock, "up");
    // The tests before left replicas that are still catching up.
    await group.inSync();
    let key = "";
    await bed.servers[1]!.kill();
    await until(
      "two left",
      () => lock.health().up,
      (up) => up === 2,
    );
    await until("a vote that the replicas have too", async () => {
      key = freshKey();
      return (await lock.tryAcquire(key, "v", 20_000)).outcome === "acquired";
    });
    const all = group.servers.map((server) => server.command("GET", key));
    expect(await Promise.all(all)).toEqual(["v", "v", "v"]);

    const master = await group.master();
    const replica = group.servers.find((server) => server !== master)!;
    replica.pause();
    const result = await lock.tryAcquire(freshKey(), "w", LEASE_MS);
    replica.resume();
    expect(result.outcome).toBe("noQuorum");
  });
});
