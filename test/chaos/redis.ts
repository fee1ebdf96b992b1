/** Redis nodes die, hang, come back, were never there, or do not let us in. */
import { describe, expect, it } from "vitest";
import { ConditionType, EventReason, Reason } from "../../src/api/reasons.ts";
import { namespaces } from "../../src/kube/index.ts";
import { until } from "../cluster/proc.ts";
import type { Replica } from "../harness/replica.ts";
import { freePort, startRedis, startRedisNodes, type RedisServer } from "../redis/server.ts";
import { conditionOf, NEVER_FINISHES, useWorld, type Lab } from "./world.ts";

/** As short as it may be: a node that came back without its memory must not vote for so long. */
const lock = { leaseSeconds: 5 };

const world = useWorld();

function urlsOf(servers: readonly RedisServer[]): string[] {
  return servers.map(({ url }) => url);
}

async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

async function condition(lab: Lab, name: string, type: string, status: string, reason: Reason) {
  return lab.seen.until(`${name}: ${type} ${status}, ${reason}`, () => {
    const seen = conditionOf(lab.seen.owner(name), type);
    return seen?.status === status && seen.reason === reason && seen;
  });
}

/** /readyz?verbose says this about the lock backend. */
async function readiness(replica: Replica, says: RegExp): Promise<void> {
  await until(`readyz: ${says}`, 90_000, async () => {
    const text = await replica.readyz();
    return text.split("\n").some((line) => line.includes("redis-quorum") && says.test(line));
  });
}

describe.concurrent("nodes are lost", () => {
  it("all of them: Proceed launches by the ledger alone, Wait waits, says so, and goes on", async () => {
    const redis = await startRedisNodes(3);
    await using lab = await world().lab();
    const replicas = await Promise.all(
      ["a", "b"].map((name) => lab.replica(name, { redis: urlsOf(redis) })),
    );
    const names = ["proceed", "wait"];
    await lab.create("proceed", { lock });
    await lab.create("wait", { lock: { ...lock, onQuorumLoss: "Wait" } });
    await Promise.all(names.map((name) => lab.seen.created(name, 2)));

    await Promise.all(redis.map((server) => server.kill()));
    await Promise.all(
      replicas.map((replica) =>
        replica.line("no majority", (l) => l.event === "RedisHealth" && l.level === "warn"),
      ),
    );
    await Promise.any(
      replicas.map((replica) =>
        replica.line("waits", (l) => l.outcome?.startsWith("no quorum: waiting") === true),
      ),
    );
    const waiting = lab.seen.jobs("wait").length;
    await lab.more("proceed", 3);
    await condition(lab, "wait", ConditionType.Ready, "False", Reason.QuorumLost);
    await condition(lab, "proceed", ConditionType.Ready, "True", Reason.Scheduled);
    await condition(lab, "proceed", ConditionType.LockBackendAvailable, "False", Reason.QuorumLost);
    expect(lab.seen.jobs("wait")).toHaveLength(waiting);

    await Promise.all(redis.map((server) => server.start()));
    await lab.seen.created("wait", waiting + 1);
    await condition(lab, "wait", ConditionType.Ready, "True", Reason.Scheduled);
    expect(await lab.violationsAtEnd()).toEqual([]);
    await stopAll(redis);
  });

  it("one: nothing changes; a majority hangs: Wait waits; one of them is back: it goes on", async () => {
    const redis = await startRedisNodes(3);
    const [first, second] = redis as [RedisServer, RedisServer];
    await using lab = await world().lab();
    const replica = await lab.replica("a", { redis: urlsOf(redis) });
    await lab.create("wait", { lock: { ...lock, onQuorumLoss: "Wait" } });
    await lab.seen.created("wait", 1);
    await first.kill();
    await readiness(replica, /2 of 3/);
    await lab.more("wait", 2);
    second.pause();
    await replica.line("waits", (l) => l.outcome?.startsWith("no quorum: waiting") === true);
    await readiness(replica, /1 of 3/);
    const waiting = lab.seen.jobs("wait").length;
    second.resume();
    await lab.seen.created("wait", waiting + 2);
    await first.start();
    await readiness(replica, /3 of 3/);
    await lab.more("wait", 1);
    expect(await lab.violationsAtEnd()).toEqual([]);
    await stopAll(redis);
  });

  it("and forget the lock of a run that lives: it is taken anew", async () => {
    const redis = await startRedisNodes(3);
    await using lab = await world().lab();
    const replica = await lab.replica("a", { redis: urlsOf(redis) });
    await lab.create("long", { job: NEVER_FINISHES, lock });
    await lab.seen.created("long", 1);
    await lab.seen.settled("long");
    const { lockKey, lockValue } = lab.seen.ledger("long")!.runs[0]!;
    await Promise.all(redis.map(({ command }) => command("DEL", lockKey)));
    await until("a majority holds it again", 90_000, async () => {
      const values = await Promise.all(redis.map(({ command }) => command("GET", lockKey)));
      return values.filter((value) => value === lockValue).length >= 2;
    });
    await until("it is counted", 90_000, async () =>
      /lock_renewals_total\{outcome="regained"\} 1/.test(await replica.metrics()),
    );
    expect(await lab.violationsAtEnd()).toEqual([]);
    await stopAll(redis);
  });
});

describe.concurrent("nodes cannot be used from the start", () => {
  it("nobody listens: named in the log and in readyz, ticks run; and it is well when they start", async () => {
    const ports = await Promise.all([freePort(), freePort(), freePort()]);
    await using lab = await world().lab();
    const replica = await lab.replica("a", {
      redis: ports.map((port) => `redis://127.0.0.1:${port}`),
    });
    const { reason } = await replica.line("names them", (l) => l.event === "RedisHealth");
    for (const port of ports) expect(reason).toContain(`127.0.0.1:${port} ECONNREFUSED`);
    await readiness(replica, /\[-\].*ECONNREFUSED/);
    await lab.create("job", { lock });
    await condition(lab, "job", ConditionType.LockBackendAvailable, "False", Reason.QuorumLost);
    await lab.seen.created("job", 2);
    const redis = await Promise.all(ports.map((port) => startRedis({ port })));
    await readiness(replica, /\[\+\]/);
    await condition(lab, "job", ConditionType.LockBackendAvailable, "True", Reason.QuorumReachable);
    await lab.more("job", 2);
    expect(await lab.violationsAtEnd()).toEqual([]);
    await stopAll(redis);
  });

  it("a wrong password: named without it, ticks run; and it is well when it is let in", async () => {
    const password = "right-Pa55";
    const wrong = "wrong-Pa55";
    const redis = await startRedisNodes(3, { args: ["--requirepass", password], password });
    await using lab = await world().lab();
    const replica = await lab.replica("a", {
      redis: urlsOf(redis),
      env: { LOCKEDCRON_REDIS_PASSWORD: wrong },
    });
    await readiness(replica, /\[-\].*WRONGPASS/);
    await lab.create("job", { lock });
    await lab.seen.created("job", 2);
    await Promise.all(
      redis.map(({ command }) => command("ACL", "SETUSER", "default", `>${wrong}`)),
    );
    await readiness(replica, /\[\+\]/);
    await lab.more("job", 1);
    expect(await lab.violationsAtEnd()).toEqual([]);
    const said = JSON.stringify(replica.lines) + (await replica.readyz());
    expect(said).toContain("WRONGPASS");
    expect(said).not.toContain("Pa55");
    await stopAll(redis);
  });
});

describe.concurrent("a key that no replica has set is in the way", () => {
  it("for ever, by hand: Proceed launches all the same and names it, Wait waits until it is gone", async () => {
    await using lab = await world().lab();
    await lab.replica("a");
    const names = ["stuck-proceed", "stuck-wait"] as const;
    const keyFor = (name: string): string => `lockedcron:${clusterUid}:${lab.key(name)}`;
    const kubeSystem = await world().client.get(namespaces, { name: "kube-system" });
    const clusterUid = kubeSystem.metadata.uid ?? "";
    const onAll = (...command: [string, ...string[]]): Promise<unknown[]> =>
      Promise.all(world().redis.map((server) => server.command(...command)));
    await Promise.all(names.map((name) => onAll("SET", keyFor(name), "by hand")));
    await lab.create("stuck-proceed", { lock });
    await lab.create("stuck-wait", { lock: { ...lock, onQuorumLoss: "Wait" } });
    const told = await lab.seen.until("both are told of", () => {
      const events = lab.seen.events(EventReason.LockStuck);
      return names.every((n) => events.some((e) => e.involvedObject.name === n)) && events;
    });
    for (const { message, involvedObject } of told) {
      expect(message).toContain(keyFor(involvedObject.name));
    }
    await lab.seen.created("stuck-proceed", 3);
    expect(lab.seen.jobs("stuck-wait")).toEqual([]);
    await Promise.all(names.map((name) => onAll("DEL", keyFor(name))));
    await Promise.all(names.map((name) => lab.more(name, 2)));
    expect(await lab.violationsAtEnd()).toEqual([]);
  });
});
