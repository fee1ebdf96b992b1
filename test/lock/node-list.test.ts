import { describe, expect, it } from "vitest";
import type { QuorumLock } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { type RedisServer, startRedisNodes } from "../redis/server.ts";
import { freshKey, freshValue, redisBed } from "./fixture.ts";

/** The servers of each test are its own: what is tried is what they bear. */
const bed = redisBed(0);
const FAST = { nodeTimeoutMs: 500, heartbeatMs: 100, reconnectMaxMs: 50 };
const LEASE_MS = 1_500;

async function withServers(
  count: number,
  run: (servers: RedisServer[], urls: string[]) => Promise<void>,
): Promise<void> {
  const servers = await startRedisNodes(count);
  try {
    await run(
      servers,
      servers.map(({ url }) => url),
    );
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** A lock with a list of its own, made of the addresses. */
async function lockOver(
  nodes: string[],
  previousNodes?: string[],
  more: object = {},
): Promise<QuorumLock> {
  const change = previousNodes === undefined ? {} : { previousNodes, maxLeaseMs: LEASE_MS };
  // No name for the list: the bed gives one to the tests of its own servers.
  const unnamed = { listId: undefined } as object;
  return bed.lock({ ...unnamed, ...FAST, nodes, ...change, trustNewList: true, ...more });
}

const reasons = (lock: QuorumLock) => lock.health().nodes.map(({ reason }) => reason);
const tryOn = async (lock: QuorumLock, key = freshKey()) =>
  (await lock.tryAcquire(key, freshValue(), LEASE_MS)).outcome;

describe("another list of nodes", () => {
  it("that shares a node gets no vote, also from nodes that nobody used before", async () => {
    await withServers(5, async (_, urls) => {
      const old = await lockOver(urls.slice(0, 3));
      expect(await tryOn(old)).toBe("acquired");
      const other = await lockOver(urls.slice(2));
      expect(await tryOn(other)).toBe("noQuorum");
      expect(reasons(other)).toEqual(Array(3).fill("NODELIST"));
      expect(other.health().nodes[0]?.message).toMatch(/serves the list of nodes 3-\w+.*3-\w+/);
      await expect(other.acquire(freshKey())).rejects.toMatchObject({ reason: "unsafe" });
      expect(await tryOn(old)).toBe("acquired");
    });
  });

  it("in another order is the same list", async () => {
    await withServers(3, async (_, urls) => {
      const one = await lockOver(urls);
      const two = await lockOver(urls.toReversed(), urls, { maxLeaseMs: LEASE_MS });
      expect([await tryOn(one), await tryOn(two)]).toEqual(["acquired", "acquired"]);
    });
  });

  it("with the name of the first is the same list, by whatever addresses", async () => {
    await withServers(3, async (_, urls) => {
      const one = await lockOver(urls, undefined, { listId: "shared" });
      const aliases = urls.map((url) => url.replace("127.0.0.1", "localhost"));
      const two = await lockOver(aliases, undefined, { listId: "shared" });
      expect([await tryOn(one), await tryOn(two)]).toEqual(["acquired", "acquired"]);
    });
  });

  it("is let in when the marker of the old one is deleted by hand", async () => {
    await withServers(3, async (servers, urls) => {
      const old = await lockOver(urls.slice(0, 1));
      await old.close();
      const next = await lockOver(urls);
      expect(next.health().quorum).toBe(false);
      await servers[0]!.command("DEL", "lockedcron:probe:incarnation");
      await until("quorum", () => next.health().up === 3);
      expect(await tryOn(next)).toBe("acquired");
    });
  });
});

describe("a list that takes the place of another", () => {
  it("votes only when nothing that is held by the old one can be valid any more", async () => {
    await withServers(5, async (_, urls) => {
      const key = freshKey();
      // It looks at nothing by itself: what it learns it learns from the answers to its calls.
      const old = await lockOver(urls.slice(0, 3), undefined, {
        factsMs: 600_000,
        heartbeatMs: 600_000,
      });
      const held = await old.tryAcquire(key, "by the old list", LEASE_MS);
      // One node in common: the majorities of the two lists need not meet.
      const next = await lockOver(urls.slice(2), urls.slice(0, 3));
      expect(await tryOn(next, key)).toBe("noQuorum");
      expect(reasons(next)).toEqual(Array(3).fill("NODELIST"));

      // By the old list nobody can renew or acquire any more.
      expect((await old.extend(key, "by the old list", LEASE_MS)).outcome).toBe("noQuorum");
      expect(await tryOn(old)).toBe("noQuorum");

      const won = await until(
        "the new one is in force",
        () => tryOn(next, key),
        (outcome) => outcome === "acquired",
      );
      expect(won).toBe("acquired");
      expect(held.outcome === "acquired" && held.grant.isValid()).toBe(false);
      expect(reasons(old)).toEqual(Array(3).fill("NODELIST"));
    });
  });

  it("is put in force for those too that start without knowing of the old one, and at once for later ones", async () => {
    await withServers(4, async (_, urls) => {
      await lockOver(urls.slice(0, 3));
      const next = await lockOver(urls.slice(1), urls.slice(0, 3));
      const unknowing = await lockOver(urls.slice(1));
      expect(unknowing.health().up).toBe(0);
      await until("the new one is in force", () => next.health().up === 3);
      await until("for the other, too", () => unknowing.health().up === 3);
      const later = await lockOver(urls.slice(1), urls.slice(0, 3));
      expect(await tryOn(later)).toBe("acquired");
    });
  });

  it("waits while no majority of the old one can be reached, and goes on when it can", async () => {
    await withServers(6, async (servers, urls) => {
      const old = await lockOver(urls.slice(0, 3));
      expect(await tryOn(old)).toBe("acquired");
      for (const i of [0, 1]) servers[i]!.pause();
      const next = await lockOver(urls.slice(3), urls.slice(0, 3));
      await until(
        "its own nodes are looked at",
        () => reasons(next).join() === "NODELIST,NODELIST,NODELIST",
      );
      const began = performance.now();
      await until("longer than a lease", () => performance.now() - began > LEASE_MS * 1.5);
      expect(next.health().nodes[0]?.message).toMatch(/majority of the nodes before/);
      for (const i of [0, 1]) servers[i]!.resume();
      await until("in force", () => next.health().up === 3);
      expect(await tryOn(old)).toBe("noQuorum");
    });
  });

  it("can be given back to the first", async () => {
    await withServers(4, async (_, urls) => {
      const [one, two] = [urls.slice(0, 3), urls.slice(1)];
      const first = await lockOver(one);
      const second = await lockOver(two, one);
      await until("the second", () => second.health().up === 3);
      const third = await lockOver(one, two);
      await until("the first again", () => third.health().up === 3);
      await until("for its old users, too", () => first.health().up === 3);
      expect(await tryOn(third)).toBe("acquired");
      await until("not for the second's", async () => (await tryOn(second)) === "noQuorum");
    });
  });
});
