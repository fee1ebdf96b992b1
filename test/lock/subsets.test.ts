import { describe, expect, it } from "vitest";
import { createQuorumLock, type QuorumLock } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { type FaultProxy, startProxy } from "../redis/proxy.ts";
import { allUp, freshKey, freshValue, LIST, redisBed } from "./fixture.ts";

/**
 * All 2^5 subsets of nodes that are, in turn: taken by somebody else, dead, hung (asked, and nothing is executed), and
 * lossy (executed, and the answer is lost). What must come out is known from the number of good nodes alone.
 */
const bed = redisBed(5);
const LEASE_MS = 20_000;
const FAST = { nodeTimeoutMs: 800, heartbeatMs: 60_000, reconnectMaxMs: 20 };
const SUBSETS = Array.from({ length: 32 }, (_, mask) =>
  [0, 1, 2, 3, 4].filter((i) => (mask >> i) % 2 === 1),
);
const THIEF = "somebody else";

/** A lock with proxies of its own, so that the cases of this file can run side by side. */
interface Way extends AsyncDisposable {
  readonly lock: QuorumLock;
  readonly proxies: readonly FaultProxy[];
}

async function openWay(): Promise<Way> {
  const proxies = await Promise.all(bed.servers.map((server) => startProxy(() => server.port)));
  const lock = createQuorumLock({ ...FAST, listId: LIST, nodes: proxies.map(({ url }) => url) });
  await allUp(lock);
  return {
    lock,
    proxies,
    async [Symbol.asyncDispose]() {
      await lock.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
    },
  };
}

type Bad = Readonly<Record<"acquire" | "extend" | "release", string>>;

interface Kind {
  readonly name: string;
  harm(nodes: readonly number[], key: string, way: Way): Promise<void>;
  /** outcomes when a majority is of this kind */
  readonly bad: Bad;
}

const MUTE: Bad = { acquire: "noQuorum", extend: "noQuorum", release: "unknown" };

async function away(nodes: readonly number[], { lock, proxies }: Way): Promise<void> {
  for (const i of nodes) {
    proxies[i]!.faults.refuse = true;
    proxies[i]!.cut();
  }
  await until(
    "noticed",
    () => lock.health().up,
    (up) => up === 5 - nodes.length,
  );
}

const KINDS: readonly Kind[] = [
  {
    name: "held by somebody else",
    async harm(nodes, key) {
      await Promise.all(nodes.map((i) => bed.servers[i]!.command("SET", key, THIEF, "PX", 60_000)));
    },
    bad: { acquire: "held", extend: "lost", release: "expired" },
  },
  {
    name: "dead",
    harm: async (nodes, _, way) => away(nodes, way),
    bad: MUTE,
  },
  {
    name: "hung",
    async harm(nodes, _, { proxies }) {
      for (const i of nodes) proxies[i]!.faults.dropRequests = true;
    },
    bad: MUTE,
  },
  {
    name: "lossy",
    async harm(nodes, _, { proxies }) {
      for (const i of nodes) proxies[i]!.faults.dropReplies = true;
    },
    bad: MUTE,
  },
];

/** Everything works again, on new connections where the old ones were damaged. */
async function mend(nodes: readonly number[], { lock, proxies }: Way): Promise<void> {
  const before = lock.health().nodes.map(({ since }) => since);
  for (const i of nodes) {
    const { faults } = proxies[i]!;
    const damaged = faults.dropReplies || faults.dropRequests || faults.refuse;
    faults.dropReplies = false;
    faults.dropRequests = false;
    faults.refuse = false;
    if (!damaged) continue;
    proxies[i]!.cut();
    await until(
      "connected anew",
      () => lock.health().nodes[i]!,
      ({ state, since }) => state === "up" && since !== before[i],
    );
  }
}

const ours = (values: readonly unknown[], value: string) =>
  values.filter((v) => v === value).length;

const everyone = (script: (server: (typeof bed.servers)[number]) => Promise<unknown>) =>
  Promise.all(bed.servers.map(script));

describe.concurrent.each(KINDS)("for all 32 subsets of nodes that are $name", ({ harm, bad }) => {
  it("acquire", async () => {
    await using way = await openWay();
    for (const nodes of SUBSETS) {
      const [key, value] = [freshKey(), freshValue()];
      await harm(nodes, key, way);
      const { outcome } = await way.lock.tryAcquire(key, value, LEASE_MS);
      await mend(nodes, way);
      expect([nodes, outcome]).toEqual([nodes, nodes.length <= 2 ? "acquired" : bad.acquire]);
      // A lock that was acquired is on a majority; of one that was not, nothing is left anywhere.
      await until(
        `the right traces after ${nodes.join()}`,
        async () => ours(await bed.values(key), value),
        (number) => (outcome === "acquired" ? number >= 3 : number === 0),
      );
    }
  });

  it("extend", async () => {
    await using way = await openWay();
    for (const nodes of SUBSETS) {
      const [key, value] = [freshKey(), freshValue()];
      await everyone((s) => s.command("SET", key, value, "PX", 60_000));
      await harm(nodes, key, way);
      const { outcome } = await way.lock.extend(key, value, LEASE_MS);
      await mend(nodes, way);
      expect([nodes, outcome]).toEqual([nodes, nodes.length <= 2 ? "renewed" : bad.extend]);
      await until(
        `the right traces after ${nodes.join()}`,
        async () => ours(await bed.values(key), value),
        (number) => (outcome === "lost" ? number === 0 : number >= 3),
      );
    }
  });

  it("release", async () => {
    await using way = await openWay();
    for (const nodes of SUBSETS) {
      const [key, value] = [freshKey(), freshValue()];
      await everyone((s) => s.command("SET", key, value, "PX", LEASE_MS));
      await harm(nodes, key, way);
      const { outcome } = await way.lock.release(key, value, LEASE_MS);
      await mend(nodes, way);
      expect([nodes, outcome]).toEqual([nodes, nodes.length <= 2 ? "released" : bad.release]);
      await until(
        `nothing left after ${nodes.join()}`,
        async () => ours(await bed.values(key), value),
        (number) => number === 0,
      );
    }
  });
});
