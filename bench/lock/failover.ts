/** How long the lock stays with a Sentinel-managed master that hangs, or that has been replaced while it is alive. */
import { setTimeout as sleep } from "node:timers/promises";
import { createQuorumLock } from "../../src/lock/index.ts";
import { type SentinelGroup, startSentinelGroup } from "../../test/redis/sentinel.ts";
import { type RedisServer, startRedisNodes } from "../../test/redis/server.ts";

/** Each takes the better part of a minute: Sentinel leaves time between failovers. */
const ROUNDS = 4;
const DOWN_AFTER_MS = 1_000;
/** Twice the failover-timeout of the group, and some. */
const BETWEEN_FAILOVERS_MS = 6_500;

export interface Failovers {
  /** milliseconds from the fault (the promotion of another) until the node no longer votes from the old master */
  readonly hung_left_ms: number[];
  readonly demoted_left_ms: number[];
  /** milliseconds from the fault until the lock is connected to the new master */
  readonly hung_followed_ms: number[];
  readonly demoted_followed_ms: number[];
}

/** The operator's time-outs. Two nodes beside the group, which has three sentinels and two replicas. */
export async function failovers(): Promise<Failovers> {
  const group = await startSentinelGroup("bench", { downAfterMs: DOWN_AFTER_MS });
  const others = await startRedisNodes(2);
  const result: Failovers = {
    hung_left_ms: [],
    demoted_left_ms: [],
    hung_followed_ms: [],
    demoted_followed_ms: [],
  };
  try {
    await using lock = createQuorumLock({
      nodes: [
        { sentinels: group.sentinels.map(({ url }) => url), masterName: group.masterName },
        ...others.map(({ url }) => url),
      ],
      maxLeaseMs: 500,
    });
    const node = () => lock.health().nodes[0];
    const whole = async () => {
      while (lock.health().up < 3) await sleep(20);
    };

    /** `fault` is over when it has done the harm; from then on the old master must not be trusted. */
    async function measure(fault: () => Promise<void>): Promise<[left: number, followed: number]> {
      await whole();
      const before = node()?.facts?.runId;
      const isLeft = () => node()?.state !== "up" || node()?.facts?.runId !== before;
      const isThere = () => node()?.state !== "down" && node()?.facts?.runId !== before;
      let start = Infinity;
      const done = fault().then(() => (start = performance.now()));
      while (!isLeft()) await sleep(2);
      // Zero: left before the harm was done.
      const left = Math.max(0, performance.now() - start);
      while (!isThere()) await sleep(2);
      await done;
      return [left, performance.now() - start];
    }

    /** Until another one is a master, which may grant what the old one has granted. */
    async function promoteAnother(old: RedisServer): Promise<void> {
      const replicas = group.servers.filter((server) => server !== old);
      const isMaster = async (server: RedisServer) =>
        String(await server.command("INFO", "replication").catch(() => "")).includes("role:master");
      await group.beginFailover();
      while (!(await Promise.all(replicas.map(isMaster))).includes(true)) await sleep(5);
    }

    for (let i = 0; i < ROUNDS; i += 1) {
      const old = await group.master();
      const [left, followed] = await measure(async () => old.pause());
      result.hung_left_ms.push(left);
      result.hung_followed_ms.push(followed);
      old.resume();
      while (!/role:slave/.test(String(await old.command("INFO", "replication")))) await sleep(50);
      await settled(group);

      const master = await group.master();
      const [away, there] = await measure(() => promoteAnother(master));
      result.demoted_left_ms.push(away);
      result.demoted_followed_ms.push(there);
      await settled(group);
    }
    return result;
  } finally {
    await group.stop();
    await Promise.all(others.map((server) => server.stop()));
  }
}

/** Sentinel refuses a failover without a good replica, and another one too soon after the last. */
async function settled(group: SentinelGroup): Promise<void> {
  await group.inSync();
  await sleep(BETWEEN_FAILOVERS_MS);
}
