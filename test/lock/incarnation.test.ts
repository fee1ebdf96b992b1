import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { describeHealth, type LockHealth, type LockObserver } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { freshKey, freshValue, redisBed } from "./fixture.ts";

const bed = redisBed(5);
const FAST = { nodeTimeoutMs: 2_000, heartbeatMs: 100, reconnectMaxMs: 50, factsMs: 100 };
const LEASE_MS = 3_000;
const state = (lock: { health(): { nodes: readonly { state: string }[] } }, i: number) =>
  lock.health().nodes[i]?.state;

describe("a node that restarts without its data", () => {
  it("does not vote until the longest lease has passed: a lock on the bare majority is not given twice", async () => {
    const a = await bed.lock(FAST);
    const b = await bed.lock({ ...FAST, maxLeaseMs: LEASE_MS });
    const key = freshKey();
    // A holds a majority only: the others were down when it acquired.
    await Promise.all([3, 4].map((i) => bed.servers[i]!.kill()));
    const granted = await a.tryAcquire(key, "A", LEASE_MS);
    expect(granted.outcome).toBe("acquired");
    await Promise.all([2, 3, 4].map((i) => bed.servers[i]!.wipe()));
    await until(
      "B sees them",
      () => b.health().nodes,
      (all) => all.every((n) => n.state !== "down"),
    );

    const early = await b.tryAcquire(key, "B", LEASE_MS);
    expect(early.outcome).toBe("noQuorum");
    expect(early.perNode[2]).toMatchObject({ outcome: "quarantined" });

    await until(
      "all vote again",
      () => b.health().up,
      (up) => up === 5,
    );
    expect(granted.outcome === "acquired" && granted.grant.isValid()).toBe(false);
    expect((await b.tryAcquire(key, "B", LEASE_MS)).outcome).toBe("acquired");
  });

  it("is given the locks of the others meanwhile, and vouches for them afterwards", async () => {
    const lock = await bed.lock(FAST);
    const [key, value] = [freshKey(), freshValue()];
    await lock.tryAcquire(key, value, LEASE_MS);
    await bed.servers[0]!.wipe();
    await until(
      "quarantined",
      () => state(lock, 0),
      (s) => s === "quarantined",
    );
    const renewed = await lock.extend(key, value, LEASE_MS);
    expect(renewed).toMatchObject({ outcome: "renewed" });
    await until(
      "healed",
      () => bed.values(key),
      (all) => all[0] === value,
    );
    await until(
      "votes",
      () => state(lock, 0),
      (s) => s === "up",
    );
  });

  it("counts by its uptime also for an operator that starts later", async () => {
    await bed.servers[1]!.restart();
    const lock = await bed.lock({ ...FAST, maxLeaseMs: LEASE_MS });
    expect(state(lock, 1)).toBe("quarantined");
    expect(lock.health().nodes[1]).toMatchObject({ reason: "QUARANTINED" });
    await until(
      "votes",
      () => state(lock, 1),
      (s) => s === "up",
    );
  });
});

describe("a list of nodes that have just started", () => {
  it("votes at once when nothing is said about leases before", async () => {
    const lock = await bed.lock(FAST);
    await lock.tryAcquire(freshKey(), freshValue(), 600_000);
    await bed.servers[0]!.kill();
    const late = await bed.lock(FAST);
    // The lease that this lock uses itself was not in use before it was made.
    expect((await late.tryAcquire(freshKey(), freshValue(), 600_000)).outcome).toBe("acquired");
    await bed.servers[0]!.start();
    await until(
      "votes",
      () => state(late, 0),
      (s) => s === "up",
    );
  });

  const YOUNG = { ...FAST, maxLeaseMs: 600_000 };
  const states = (lock: { health(): { nodes: readonly { state: string }[] } }) =>
    lock.health().nodes.map((node) => node.state);

  it("is quarantined as a whole: it may have lost all its data", async () => {
    await Promise.all(bed.servers.map((server) => server.wipe()));
    expect(states(await bed.lock(YOUNG))).toEqual(Array(5).fill("quarantined"));
  });

  it("votes at once where a new list is trusted, for later users too; not so a node that came back empty", async () => {
    const trusting = { ...YOUNG, trustNewList: true };
    await Promise.all(bed.servers.map((server) => server.wipe()));
    expect(states(await bed.lock(trusting))).toEqual(Array(5).fill("up"));
    expect(states(await bed.lock(trusting))).toEqual(Array(5).fill("up"));
    await bed.servers[4]!.wipe();
    const later = await bed.lock(trusting);
    expect(states(later)).toEqual(["up", "up", "up", "up", "quarantined"]);
    // The list was founded by another process of that server: it may have forgotten what it granted since.
    await bed.servers[3]!.restart();
    expect(states(await bed.lock(trusting))[3]).toBe("quarantined");
  });
});

describe("a node that changes its role without ending the connection", () => {
  it("is noticed by the very next acquisition, and quarantined", async () => {
    const lock = await bed.lock({ ...FAST, factsMs: 60_000, heartbeatMs: 60_000 });
    await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    const [node, other] = [bed.servers[0]!, bed.servers[1]!];
    await node.command("REPLICAOF", "127.0.0.1", other.port);
    await until(
      "synced",
      () => node.command("INFO", "replication"),
      (t) => /master_link_status:up/.test(String(t)),
    );
    await node.command("REPLICAOF", "NO", "ONE");
    const result = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    expect(result.outcome).toBe("acquired");
    await until(
      "quarantined",
      () => state(lock, 0),
      (s) => s === "quarantined",
    );
  });

  it("or that is flushed, is noticed the same way", async () => {
    const lock = await bed.lock({ ...FAST, factsMs: 60_000, heartbeatMs: 60_000 });
    await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    await bed.servers[3]!.command("FLUSHALL");
    expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
    await until(
      "quarantined",
      () => state(lock, 3),
      (s) => s === "quarantined",
    );
  });

  it("as a replica it does not vote", async () => {
    const lock = await bed.lock(FAST);
    await bed.servers[2]!.command("REPLICAOF", "127.0.0.1", bed.servers[1]!.port);
    await until(
      "seen",
      () => lock.health().nodes[2]?.reason,
      (r) => r === "READONLY",
    );
    await bed.servers[2]!.command("REPLICAOF", "NO", "ONE");
    await until(
      "connected",
      () => state(lock, 2),
      (s) => s !== "down",
    );
    expect((await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS)).outcome).toBe("acquired");
  });
});

describe("a node that is not safe", () => {
  it("the same Redis under two names has one vote", async () => {
    const [one, two] = bed.servers;
    const lock = await bed.lock({
      ...FAST,
      nodes: [one!.url, one!.url.replace("127.0.0.1", "localhost"), two!.url],
    });
    await until(
      "seen",
      () => state(lock, 1),
      (s) => s === "unsafe",
    );
    expect(lock.health().nodes[1]).toMatchObject({ reason: "DUPLICATE" });
    await two!.kill();
    await until(
      "down",
      () => state(lock, 2),
      (s) => s === "down",
    );
    const result = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    expect(result.outcome).toBe("noQuorum");
    expect(result.perNode[1]).toMatchObject({ outcome: "unsafe", reason: "DUPLICATE" });
  });

  it("one that evicts keys does not vote, until its policy is mended", async () => {
    const lock = await bed.lock(FAST);
    const node = bed.servers[4]!;
    await node.command("CONFIG", "SET", "maxmemory", "100mb");
    await node.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    await until(
      "seen",
      () => state(lock, 4),
      (s) => s === "unsafe",
    );
    expect(lock.health()).toMatchObject({ up: 4, quorum: true });
    await node.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    await until(
      "mended",
      () => state(lock, 4),
      (s) => s === "up",
    );
    await node.command("CONFIG", "SET", "maxmemory", "0");
  });

  it("facts of each node are in its health: memory, uptime, clock", async () => {
    const lock = await bed.lock(FAST);
    const seen = await until(
      "facts",
      () => lock.health().nodes[3]?.facts,
      (f) => f?.clockOffsetMs !== undefined,
    );
    expect(seen).toMatchObject({ role: "master", evictionPolicy: "noeviction", maxMemoryBytes: 0 });
    expect(Math.abs(seen!.clockOffsetMs!)).toBeLessThan(60_000);
    expect(lock.health().nodes[3]).not.toHaveProperty("concern");
  });

  it("clocks that are far apart are named, told of as a change, and keep nobody from voting", async () => {
    const fast = { ...systemClock, now: () => systemClock.now() + 5_000 };
    const told: LockHealth[] = [];
    const observer: LockObserver = { healthChanged: (health) => told.push(health) };
    const lock = await bed.lock({ ...FAST, clock: fast, observer });
    await until(
      "named",
      () => told.at(-1)?.nodes ?? [],
      (nodes) => nodes.length === 5 && nodes.every((n) => n.concern?.reason === "CLOCK"),
    );
    expect(describeHealth(lock.health())).toMatch(
      /^5 of 5 Redis nodes up \(3 needed\); 127\.0\.0\.1:\d+ CLOCK \(its wall clock is over a second behind ours/,
    );
    const granted = await lock.tryAcquire(freshKey(), freshValue(), LEASE_MS);
    expect(granted.outcome).toBe("acquired");
  });
});
