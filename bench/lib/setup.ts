import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import type { KubeClient } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../../test/cluster/cluster.ts";
import { writeKubeconfig } from "../../test/cluster/kubeconfig.ts";
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

/**
 * A control plane, five Redis, three replicas as processes, with the credentials and the roles of a deployed operator: tokens of
 * its service account. (Each request with a client certificate would cost the API server two verifications of its chain.)
 */
export async function setUp(): Promise<Setup> {
  const cluster = await startCluster({ mode: "control-plane", log: console.error });
  await cluster.kubectl(["apply", "-f", new URL("../../crds/", import.meta.url).pathname]);
  const kubeconfig = await kubeconfigOfOperator(cluster);
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
      kubeconfig,
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

async function kubeconfigOfOperator(cluster: ControlPlaneCluster): Promise<string> {
  await cluster.kubectl([
    "apply",
    "-f",
    new URL("../../deploy/rbac.yaml", import.meta.url).pathname,
  ]);
  const of = ["lockedcron", "--namespace=lockedcron-system", "--duration=24h"];
  const token = (await cluster.kubectl(["create", "token", ...of])).trim();
  const admin = new KubeConfig();
  admin.loadFromString(cluster.adminKubeconfig);
  const { name = "", server = "", caData = "" } = admin.getCurrentCluster() ?? {};
  const { path } = await writeKubeconfig(join(cluster.dir, "operator.kubeconfig"), {
    cluster: name,
    server,
    ca: Buffer.from(caData, "base64").toString(),
    user: "operator",
    token,
  });
  return path;
}
