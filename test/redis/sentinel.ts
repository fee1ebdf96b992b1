import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./facts.ts";
import { freePort, type RedisServer, startRedis } from "./server.ts";

/** A master with replicas under three sentinels, all real processes on loopback. */
export interface SentinelGroup {
  readonly masterName: string;
  readonly sentinels: readonly RedisServer[];
  /** All data servers; which of them is the master changes. */
  readonly servers: readonly RedisServer[];
  /** The server that the sentinels call master now. */
  master(): Promise<RedisServer>;
  /** All replicas follow the master without delay, and may take its place. */
  inSync(): Promise<void>;
  /** SENTINEL FAILOVER with the old master alive; it goes on by itself. */
  beginFailover(): Promise<void>;
  /** The same; resolves when all sentinels name the new one. */
  failover(): Promise<RedisServer>;
  stop(): Promise<void>;
}

export interface SentinelGroupOptions {
  readonly replicas?: number;
  readonly downAfterMs?: number;
}

export async function startSentinelGroup(
  masterName: string,
  { replicas = 2, downAfterMs = 500 }: SentinelGroupOptions = {},
): Promise<SentinelGroup> {
  const dir = mkdtempSync(join(tmpdir(), "lockedcron-sentinel-"));
  const first = await startRedis();
  const replicaOf = ["--replicaof", `127.0.0.1 ${first.port}`, "--repl-diskless-sync-delay", "0"];
  const others = await Promise.all(
    Array.from({ length: replicas }, () => startRedis({ args: replicaOf })),
  );
  const servers = [first, ...others];
  await until("replicas in sync", async () => {
    const info = String(await first.command("INFO", "replication"));
    return (info.match(/state=online/g) ?? []).length === replicas;
  });

  const sentinels = await Promise.all(
    [0, 1, 2].map(async (i) => {
      const port = await freePort();
      const configFile = join(dir, `sentinel-${i}.conf`);
      writeFileSync(
        configFile,
        [
          `sentinel monitor ${masterName} 127.0.0.1 ${first.port} 2`,
          `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
          `sentinel failover-timeout ${masterName} 3000`,
          "",
        ].join("\n"),
      );
      return startRedis({ program: "sentinel", configFile, port });
    }),
  );
  await until("sentinels know each other and the replicas", async () => {
    const seen = await Promise.all(sentinels.map((s) => describe(s)));
    return seen.every((m) => m["num-other-sentinels"] === "2" && m["num-slaves"] === `${replicas}`);
  });

  async function describe(sentinel: RedisServer): Promise<Record<string, string>> {
    const words = (await sentinel.command("SENTINEL", "MASTER", masterName)) as string[];
    return Object.fromEntries(
      words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? ""]] : [])),
    );
  }

  async function master(): Promise<RedisServer> {
    const { port } = await describe(sentinels[0]!);
    const found = servers.find((server) => String(server.port) === port);
    if (found === undefined) throw new Error(`sentinel names a master on port ${port}`);
    return found;
  }

  async function beginFailover(): Promise<void> {
    await sentinels[0]!.command("SENTINEL", "FAILOVER", masterName);
  }

  return {
    masterName,
    sentinels,
    servers,
    master,
    async inSync() {
      await until("replicas in sync", async () => {
        // A master that has just been chosen, or is being demoted, may close connections.
        const info = String(await (await master()).command("INFO", "replication").catch(() => ""));
        return [...info.matchAll(/state=online,offset=\d+,lag=[01]\b/g)].length === replicas;
      });
    },
    beginFailover,
    async failover() {
      const old = await master();
      await beginFailover();
      await until("all sentinels name the new master", async () => {
        const ports = await Promise.all(sentinels.map(async (s) => (await describe(s))["port"]));
        return new Set(ports).size === 1 && ports[0] !== String(old.port);
      });
      return master();
    },
    async stop() {
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
