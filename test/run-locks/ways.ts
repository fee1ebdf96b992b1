/** The ways of one replica to the API server and to each Redis node, each through a proxy that can be cut. */
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster } from "../cluster/cluster.ts";
import { startCutProxy } from "../kube/cut-proxy.ts";
import type { RedisServer } from "../redis/server.ts";

export type Reach = "API server" | "Redis" | "everything";

export interface Ways extends AsyncDisposable {
  /** Path of a kubeconfig, and URLs: what the replica is started with. */
  readonly kubeconfig: string;
  readonly redis: readonly string[];
  /** In silence: nothing passes, nothing is closed. Else connections are reset, and new ones refused. */
  cut(from: Reach, how: "silence" | "refusal"): Promise<void>;
  mend(): Promise<void>;
}

export async function openWays(
  name: string,
  cluster: Cluster,
  redis: readonly RedisServer[],
): Promise<Ways> {
  const [api, ...nodes] = await Promise.all(
    [cluster.server, ...redis.map(({ url }) => url)].map(startCutProxy),
  );
  if (api === undefined) throw new Error("there is an API server");
  const kubeconfig = join(tmpdir(), `ways-${process.pid}-${name}.kubeconfig`);
  const through = cluster.adminKubeconfig.replace(cluster.server, `https://127.0.0.1:${api.port}`);
  await writeFile(kubeconfig, through);
  const all = [api, ...nodes];
  const to: Record<Reach, typeof all> = { "API server": [api], Redis: nodes, everything: all };
  return {
    kubeconfig,
    redis: nodes.map(({ port }) => `redis://127.0.0.1:${port}`),
    async cut(from, how) {
      if (how === "refusal") await Promise.all(to[from].map((way) => way.refuse()));
      else for (const way of to[from]) way.hold("both");
    },
    async mend() {
      for (const way of all) way.release();
      await Promise.all(all.map((way) => way.listen()));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((way) => way[Symbol.asyncDispose]()));
    },
  };
}
