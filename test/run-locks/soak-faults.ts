/** What goes wrong in the soak, each fault with its own undoing; several may be at work at the same time. */
import { setTimeout as sleep } from "node:timers/promises";
import { resources } from "../../src/controller/caches.ts";
import { hasReason } from "../../src/kube/index.ts";
import { until } from "../cluster/proc.ts";
import type { Replica } from "../harness/replica.ts";
import type { RedisServer } from "../redis/server.ts";
import { NAMESPACE, PATIENCE_MS, type Scene } from "./scene.ts";
import type { Reach } from "./ways.ts";
import type { Forced } from "./witness.ts";

export interface FaultsOptions {
  scene: Scene;
  /** From 0 to 1. */
  random: () => number;
  pauseMs: number;
  nodeAwayMs: number;
  /** How many lines the witness of this LockedCronJob has now. */
  linesOf(name: string): number;
  names: readonly string[];
}

export interface Faults {
  /** Begins the next one; undefined when it would undo another's undoing. Settles when it is undone. */
  next(): { what: string; over: Promise<void> } | undefined;
  /** How often each was done. */
  counts: ReadonlyMap<string, number>;
  forced: readonly Forced[];
  isAway(server: RedisServer): boolean;
  /** Since when the API server has been there, wall clock ms; undefined while it is away. */
  apiServerSince(): number | undefined;
}

/** Whom it hits is chosen at once, so that a seed repeats it; undefined: nobody is there to be hit. */
type Fault = () => { detail?: string; work: () => Promise<void> } | undefined;

export function createFaults(o: FaultsOptions): Faults {
  const { scene } = o;
  const below = (n: number): number => Math.floor(o.random() * n);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const counts = new Map<string, number>();
  const forced: Forced[] = [];
  const redisAway = new Set<RedisServer>();
  const sick = new Set<Replica>();
  const busy = new Set<string>();
  let apiSince: number | undefined = 0;

  /** One replica at least stays whole. */
  function aReplica(): Replica | undefined {
    const whole = scene.replicas.filter((replica) => !sick.has(replica));
    return whole.length < 2 ? undefined : pick(whole);
  }

  async function withSick(victim: Replica, work: () => Promise<void>): Promise<void> {
    sick.add(victim);
    await work();
    sick.delete(victim);
  }

  /** From one to all of them. */
  function someRedis(): RedisServer[] {
    const left = [...scene.redis];
    const count = 1 + below(left.length);
    return Array.from({ length: count }, () => left.splice(below(left.length), 1)).flat();
  }

  function onRedis(
    how: string,
    work: (victims: RedisServer[], ms: number) => Promise<void>,
  ): Fault {
    return () => {
      const victims = someRedis();
      const ms = 2_000 + below(18_000);
      return {
        detail: victims.length === scene.redis.length ? `all ${how}` : how,
        async work() {
          for (const server of victims) redisAway.add(server);
          await work(victims, ms);
          for (const server of victims) redisAway.delete(server);
        },
      };
    };
  }

  const faults: Record<string, Fault> = {
    "replica killed"() {
      const victim = aReplica();
      if (victim === undefined) return undefined;
      const work = async () => {
        scene.replicas.splice(scene.replicas.indexOf(victim), 1);
        await victim.kill();
        scene.replicas.push(await scene.start(victim.name));
      };
      return { work: () => withSick(victim, work) };
    },
    "replica paused"() {
      const victim = aReplica();
      if (victim === undefined) return undefined;
      const work = async () => {
        victim.pause();
        await sleep(o.pauseMs);
        victim.resume();
      };
      return { work: () => withSick(victim, work) };
    },
    "replica cut off"() {
      const victim = aReplica();
      const ways = scene.ways.get(victim?.name ?? "");
      if (victim === undefined || ways === undefined) return undefined;
      const from = pick<Reach>(["API server", "Redis", "everything"]);
      const how = pick(["silence", "refusal"] as const);
      const work = async () => {
        await ways.cut(from, how);
        await sleep(o.pauseMs);
        await ways.mend();
      };
      return { detail: `from ${from}`, work: () => withSick(victim, work) };
    },
    "Redis killed": onRedis("killed", async (victims, ms) => {
      await Promise.all(victims.map((server) => server.kill()));
      await sleep(ms);
      await Promise.all(victims.map((server) => server.start()));
    }),
    "Redis wiped": onRedis("wiped", async (victims) => {
      await Promise.all(victims.map((server) => server.wipe()));
    }),
    "Redis paused": onRedis("paused", async (victims, ms) => {
      for (const server of victims) server.pause();
      await sleep(ms);
      for (const server of victims) server.resume();
    }),
    "API server restarted"() {
      const how = pick(["SIGTERM", "SIGKILL"] as const);
      return {
        async work() {
          apiSince = undefined;
          await scene.cluster.apiServer.restart({ how });
          apiSince = Date.now();
        },
      };
    },
    "node cut off"() {
      const node = pick(scene.cluster.nodes);
      return {
        async work() {
          await node.cutOff();
          await sleep(o.nodeAwayMs);
          await node.heal();
        },
      };
    },
    "pod force-deleted"() {
      const alive = o.names.flatMap((name) =>
        scene.pods(name).filter((pod) => pod.ranAt !== undefined && pod.goneAt === undefined),
      );
      if (alive.length === 0) return undefined;
      const { name: of, object } = pick(alive);
      const { name } = object.metadata;
      return {
        async work() {
          // ORDER: before it is deleted. What it writes until its kubelet has heard of it is on whoever forces.
          forced.push({ pod: name, at: o.linesOf(of) });
          const key = { namespace: NAMESPACE, name };
          await until(`${name} is deleted`, PATIENCE_MS, () =>
            scene.client.delete(resources.pods, key, { gracePeriodSeconds: 0 }).then(
              () => true,
              (error: unknown) => hasReason(error, "NotFound"),
            ),
          );
        },
      };
    },
  };
  /** Two that would undo each other's undoing do not go together. Those on replicas look to it themselves. */
  const groupOf = (name: string): string => (name.startsWith("Redis") ? "Redis" : name);

  /** Each kind comes once, in any order, before it comes again. */
  let bag: string[] = [];
  function draw(): string {
    if (bag.length === 0) bag = Object.keys(faults);
    return bag.splice(below(bag.length), 1)[0] ?? "";
  }

  return {
    next() {
      const name = draw();
      const group = groupOf(name);
      const isOfReplica = name.startsWith("replica");
      if (busy.has(group) && !isOfReplica) return undefined;
      const fault = faults[name]?.();
      if (fault === undefined) return undefined;
      const what = fault.detail === undefined ? name : `${name}: ${fault.detail}`;
      counts.set(what, (counts.get(what) ?? 0) + 1);
      busy.add(group);
      return { what, over: fault.work().finally(() => busy.delete(group)) };
    },
    counts,
    forced,
    isAway: (server) => redisAway.has(server),
    apiServerSince: () => apiSince,
  };
}
