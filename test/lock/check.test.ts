import { describe, expect, it } from "vitest";
import { createQuorumLock, LockConfigError, type QuorumLockOptions } from "../../src/lock/index.ts";
import { until } from "../redis/facts.ts";
import { freePort, startRedis } from "../redis/server.ts";
import { freshKey, freshValue, LEASE_MS, LIST, redisBed } from "./fixture.ts";

const bed = redisBed(3);
const USER = ["--user", "app", "on", ">pw", "~*", "+@all"];
const urls = () => bed.servers.map(({ url }) => url);

async function refusal(nodes: QuorumLockOptions["nodes"]): Promise<LockConfigError> {
  await using lock = createQuorumLock({ nodes, listId: LIST });
  const error: unknown = await lock.check().catch((e: unknown) => e);
  if (error instanceof LockConfigError) return error;
  throw new Error("was accepted", { cause: error });
}

describe("check", () => {
  it.each([
    ["a cluster-mode node", ["--cluster-enabled", "yes"], "", /CLUSTER: it runs in cluster mode/],
    ["a replica", ["--replicaof", "127.0.0.1 1"], "", /READONLY: it is a replica/],
    ["a wrong password", ["--requirepass", "right"], ":wrong@", /WRONGPASS/],
    ["no password", ["--requirepass", "right"], "", /NOAUTH/],
    ["an ACL user without a right", [...USER, "-pexpire"], "app:pw@", /NOPERM.*pexpire/i],
    ["a command that is renamed away", ["--rename-command", "EVAL", "x"], "", /NOCOMMAND.*EVAL/],
    [
      "a node that evicts",
      ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
      "",
      /EVICTION.*allkeys-lru/,
    ],
  ])("refuses %s, and names it", async (_, args, login, text) => {
    const server = await startRedis({ args });
    try {
      const [one, two] = urls();
      const wrong = server.url.replace("//", `//${login}`);
      const error = await refusal([one!, two!, wrong]);
      expect(error).toMatchObject({ code: "BadNode", field: "nodes[2]" });
      expect(error.message).toContain(`127.0.0.1:${server.port}`);
      expect(error.message).toMatch(text);
      const bad = expect.stringMatching(/^(unsafe|unavailable)$/);
      expect(error.perNode.map(({ outcome }) => outcome)).toEqual(["yes", "yes", bad]);
      expect(error.message).not.toMatch(/wrong@|:pw|right/);
    } finally {
      await server.stop();
    }
  });

  it("refuses a host that does not resolve and the same Redis twice, both in one", async () => {
    const [one] = urls();
    const error = await refusal([
      one!,
      one!.replace("127.0.0.1", "localhost"),
      "redis://no-such-host.invalid",
    ]);
    expect(error.message).toMatch(
      /nodes\[1\]: localhost:\d+ DUPLICATE.*nodes\[2\]: no-such-host\.invalid/,
    );
  });

  it("lets pass what is merely away, and says so", async () => {
    const [one, two] = urls();
    const lock = await bed.lock({ nodes: [one!, two!, `redis://127.0.0.1:${await freePort()}`] });
    expect(await lock.check()).toMatchObject({ quorum: true, up: 2 });
  });

  it("is not needed: what a wrong majority means for an acquisition is said by its error", async () => {
    const servers = await Promise.all(
      [0, 1].map(() => startRedis({ args: ["--requirepass", "x"] })),
    );
    try {
      const lock = await bed.lock({ nodes: [urls()[0]!, ...servers.map(({ url }) => url)] });
      await expect(lock.acquire(freshKey())).rejects.toThrow(
        /too few nodes answered.*unavailable \(NOAUTH\).*unavailable \(NOAUTH\)/,
      );
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  });
});

describe("the observer", () => {
  it("is told of waits and holds, of every call with what each node said, and of round trips", async () => {
    const told: Record<string, object[]> = { attempt: [], nodeReply: [], waited: [], held: [] };
    const note = (what: string) => (event: object) => void told[what]!.push(event);
    const observer = {
      attempt: note("attempt"),
      nodeReply: note("nodeReply"),
      waited: note("waited"),
      held: note("held"),
    };
    const lock = await bed.lock({ observer });
    const other = await bed.lock();
    const key = freshKey();
    const held = await lock.acquire(key, { leaseMs: LEASE_MS });
    await held.extend(LEASE_MS * 2);
    await held.release();
    await other.tryAcquire(key, freshValue(), LEASE_MS);
    await expect(lock.acquire(key, { waitMs: 1_000, retryIntervalMs: 20 })).rejects.toThrow(/held/);
    const short = await lock.acquire(freshKey(), { leaseMs: 1_000 });
    await new Promise((resolve) => {
      short.signal.addEventListener("abort", resolve, { once: true });
    });

    expect(told["waited"]).toMatchObject([
      { outcome: "acquired", tries: 1 },
      { outcome: "held" },
      { outcome: "acquired", tries: 1 },
    ]);
    expect((told["waited"]![1] as { tries: number }).tries).toBeGreaterThan(1);
    expect(told["held"]).toMatchObject([
      { end: "released", leaseMs: LEASE_MS * 2 },
      { end: "deadline", leaseMs: 1_000 },
    ]);
    for (const hold of told["held"] as {
      holdMs: number;
      leaseMs: number;
      shareOfLease: number;
    }[]) {
      expect(hold.shareOfLease).toBeCloseTo(hold.holdMs / hold.leaseMs);
    }
    const calls = (told["attempt"] as { operation: string; outcome: string }[]).map(
      ({ operation, outcome }) => `${operation} ${outcome}`,
    );
    expect(calls.slice(0, 4)).toEqual([
      "acquire acquired",
      "extend renewed",
      "release released",
      "acquire held",
    ]);
    expect(told["attempt"]![0]).toHaveProperty("perNode.length", 3);
    expect(JSON.stringify(told["nodeReply"])).not.toContain(key);
    const nodes = () =>
      new Set(told["nodeReply"]!.map((reply) => (reply as { node: string }).node));
    await until("round trips of every node", () => lock.nodes.every((node) => nodes().has(node)));
  });
});
