import { KubeConfig } from "@kubernetes/client-node";
import type { KubeClient } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../../test/cluster/cluster.ts";
import { startReplica, type Replica } from "../../test/harness/replica.ts";
import { startRedis, type RedisServer } from "../../test/redis/server.ts";
import { clientFor } from "./jobs.ts";

export interface Setup extends AsyncDisposable {
  cluster: ControlPlaneCluster;
  client: KubeClient;
  redis: RedisServer[];
  replicas: Map<string, Replica>;
  start(name: string): Promise<Replica>;
}

const NAMES = ["replica-a", "replica-b", "replica-c"];

/** A control plane, five Redis, three replicas as processes. */
export async function setUp(): Promise<Setup> {
  const cluster = await startCluster({ mode: "control-plane", log: console.error });
  await cluster.kubectl(["apply", "-f", new URL("../../crds/", import.meta.url).pathname]);
  await cluster.kubectl(["create", "namespace", "lockedcron-system"]);
  const redis = await Promise.all(Array.from({ length: 5 }, () => startRedis()));
  const replicas = new Map<string, Replica>();
  const config = (): KubeConfig => {
    const loaded = new KubeConfig();
    loaded.loadFromString(cluster.adminKubeconfig);
    return loaded;
  };
  const client = clientFor(config);
  const start = async (name: string): Promise<Replica> => {
    const replica = await startReplica({
      name,
      kubeconfig: cluster.kubeconfigPath,
      redis: redis.map((r) => r.url),
    });
    replicas.set(name, replica);
    await replica.ready();
    return replica;
  };
  await Promise.all(NAMES.map(start));
  return {
    cluster,
    client,
    redis,
    replicas,
    start,
    async [Symbol.asyncDispose]() {
      await Promise.all([...replicas.values()].map((r) => r.kill()));
      await client[Symbol.asyncDispose]();
      await Promise.all(redis.map((r) => r.stop()));
      await cluster.stop();
    },
  };
}
