/** Looks, all through the soak, for locks that outlive the pods of their run. */
import { setTimeout as sleep } from "node:timers/promises";
import { holderOf, mutexLockKey } from "../../src/domain/lock-terms.ts";
import type { RedisServer } from "../redis/server.ts";
import { NAMESPACE, type Scene } from "./scene.ts";
import type { SeenRun } from "./seen.ts";

export interface LeftOptions {
  scene: Scene;
  names: readonly string[];
  leaseMs: number;
  isAway(server: RedisServer): boolean;
  /** Nobody can know that pods are gone while the API server is away. */
  apiServerSince(): number | undefined;
}

export interface LocksLeft {
  /** Locks that were there for longer than a lease after the pods of their run were gone. */
  readonly wrong: readonly string[];
  /** Of each run: how long its locks were still there after its pods were gone and the API server was there, ms. */
  readonly delays: readonly number[];
  stop(): Promise<void>;
}

const LOOK_MS = 500;

export function watchLocksLeft(o: LeftOptions): LocksLeft {
  const { scene } = o;
  const delays: number[] = [];
  const late = new Map<string, string>();
  const freed = new Set<string>();
  const stop = new AbortController();

  /** Since when nothing of the run is there any more, as a watch of ours has told. */
  function goneSince(name: string, { run }: SeenRun): number | undefined {
    const job = scene.jobOver(run.jobName);
    const pods = scene.pods(name).filter((pod) => pod.job === run.jobName);
    if (job === undefined || pods.some(({ goneSince }) => goneSince === undefined))
      return undefined;
    return Math.max(job, ...pods.map((pod) => pod.goneSince ?? 0));
  }

  /** Where a lock with this value is, on a majority of the Redis nodes or in a fence. */
  async function valuesByKey(keys: readonly string[]): Promise<Map<string, string>> {
    const quorum = Math.floor(scene.redis.length / 2) + 1;
    const answers = await Promise.all(
      scene.redis
        .filter((server) => !o.isAway(server))
        .map((server) =>
          Promise.race([
            server.command("MGET", ...(keys as [string])).catch(() => []),
            sleep(2_000, [], { ref: false }),
          ]),
        ),
    );
    const held = new Map<string, string>();
    for (const [i, key] of keys.entries()) {
      const votes = Map.groupBy(answers as (string | null)[][], (values) => values[i] ?? undefined);
      for (const [value, from] of votes) {
        if (value !== undefined && from.length >= quorum) held.set(key, value);
      }
    }
    return held;
  }

  async function look(): Promise<void> {
    const over = o.names.flatMap((name) =>
      scene
        .runs(name)
        .filter(({ run }) => run.lockKey !== "" && !freed.has(run.lockValue))
        .map((seen) => ({ name, seen, since: goneSince(name, seen) }))
        .filter(({ since }) => since !== undefined),
    );
    if (over.length === 0) return;
    const prefix = over[0]?.seen.run.lockKey.split(`:${NAMESPACE}/`)[0] ?? "";
    const keysOf = ({ run }: SeenRun): string[] => [
      run.lockKey,
      ...(run.lock?.mutexes ?? []).map((mutex) => mutexLockKey(prefix, mutex)),
    ];
    const held = await valuesByKey([...new Set(over.flatMap(({ seen }) => keysOf(seen)))]);
    const now = Date.now();
    for (const { name, seen, since = 0 } of over) {
      const { lockValue, jobName } = seen.run;
      const holder = holderOf(`${NAMESPACE}/${name}`, lockValue);
      const left = [
        ...keysOf(seen).filter((key) => held.get(key) === lockValue),
        ...[...scene.fences].filter(([, by]) => by === holder).map(([mutex]) => `fence ${mutex}`),
      ];
      const ms = now - Math.max(since, o.apiServerSince() ?? now);
      if (left.length === 0) {
        freed.add(lockValue);
        delays.push(ms);
        continue;
      }
      if (ms <= o.leaseMs) continue;
      const overAfter = seen.overSince === undefined ? "not" : `${seen.overSince - since} ms after`;
      late.set(
        lockValue,
        `${jobName}: ${left.join(", ")} ${ms} ms after its pods were gone (${new Date(since).toISOString()}); by its ledger over ${overAfter}`,
      );
    }
  }

  async function loop(): Promise<void> {
    while (!stop.signal.aborted) {
      await look();
      await sleep(LOOK_MS);
    }
  }
  const running = loop();

  return {
    get wrong() {
      return [...late.values()];
    },
    delays,
    async stop() {
      stop.abort();
      await running;
    },
  };
}
