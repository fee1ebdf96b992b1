/** Two real nodes, three Redis nodes, replicas of the operator, and a witness of every pod from its first version on. */
import type { LockedCronJob, LockSpec } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import type { KubeClient } from "../../src/kube/index.ts";
import { startCluster, type NodesCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd } from "../crd/fixture.ts";
import { startReplica, type LogLine, type Replica } from "../harness/replica.ts";
import { startRedisNodes, type RedisServer } from "../redis/server.ts";
import { openSeen, type Seen, type SeenPod, type SeenRun } from "./seen.ts";
import { openWays, type Ways } from "./ways.ts";

export const NAMESPACE = "runs";
/** Containers start slowly on a machine that has much else to do. */
export const PATIENCE_MS = 240_000;

export interface Scene extends Seen {
  namespace: string;
  cluster: NodesCluster;
  client: KubeClient;
  redis: readonly RedisServer[];
  replicas: Replica[];
  /** Starts a replica and waits until it takes ticks; the test never runs two under one name. */
  start(name: string): Promise<Replica>;
  /** Of each replica, by name, if they were asked for. */
  ways: ReadonlyMap<string, Ways>;
  /** Starts one run of a LockedCronJob that has this container and Job spec. */
  begin(name: string, o: Workload): Promise<SeenRun>;
  /** The first pod of it that runs. */
  running(name: string): Promise<SeenPod>;
  over(name: string): Promise<SeenRun>;
  /** Of Redis: the value that the key bears on the first node. */
  inRedis(key: string): Promise<string | undefined>;
}

export interface Workload {
  namespace?: string;
  /** Of `sh -c`. */
  script: string;
  job?: Record<string, unknown>;
  pod?: Record<string, unknown>;
  lock?: LockSpec;
}

export interface SceneOptions {
  /** Default: 2. */
  nodes?: number;
  replicas?: number;
  redisNodes?: number;
  /** Each replica has ways of its own to the API server and to Redis, which can be cut. */
  cuttable?: boolean;
  onLine?: (replica: string, line: LogLine) => void;
  /** The cluster and the Redis nodes are this one's; the namespace and the replicas are not. */
  within?: Scene;
  namespace?: string;
}

async function startNodes(nodes: number): Promise<NodesCluster> {
  const cluster = await startCluster({
    mode: "nodes",
    nodes,
    // Losing a node is noticed within seconds instead of a minute.
    kubelet: { nodeLeaseDurationSeconds: 4, nodeStatusUpdateFrequency: "1s" },
    flags: {
      controllerManager: { "node-monitor-grace-period": "6s", "node-monitor-period": "1s" },
    },
  });
  await installCrd(cluster);
  return cluster;
}

export async function openScene(o: SceneOptions = {}): Promise<Scene> {
  const { namespace = NAMESPACE } = o;
  const cluster = o.within?.cluster ?? (await startNodes(o.nodes ?? 2));
  const client = clientOf(cluster.adminKubeconfig);
  await cluster.kubectl(["create", "namespace", namespace]);
  const redis = o.within?.redis ?? (await startRedisNodes(o.redisNodes ?? 3));
  const seen = await openSeen(client, namespace);
  const ways = new Map<string, Ways>();
  const replicas: Replica[] = [];
  for (let n = 0; n < (o.replicas ?? 2); n++) replicas.push(await start(`replica-${n}`));

  async function start(name: string): Promise<Replica> {
    if (o.cuttable === true && !ways.has(name)) {
      ways.set(name, await openWays(name, cluster, redis));
    }
    const replica = await startReplica({
      name,
      kubeconfig: ways.get(name)?.kubeconfig ?? cluster.kubeconfigPath,
      redis: ways.get(name)?.redis ?? redis.map(({ url }) => url),
      namespace,
      flags: [
        `--watch-namespaces=${namespace}`,
        "--membership-lease-seconds=3",
        "--take-over-after-ms=1000",
      ],
      onLine: (line) => o.onLine?.(name, line),
    });
    await replica.line("takes ticks", ({ event }) => event === "Started", PATIENCE_MS);
    return replica;
  }

  const scene: Scene = {
    ...seen,
    namespace,
    cluster,
    client,
    redis,
    replicas,
    start,
    ways,
    async begin(name, o) {
      const object = manifest(name, { namespace, ...o });
      await client.create(resources.lockedCronJobs, object, { timeoutMs: 60_000 });
      const begun = await until(`a run of ${name}`, PATIENCE_MS, async () =>
        scene.runs(name).find(({ run }) => run.jobUID !== undefined),
      );
      // One run is enough; what is active goes on.
      const body = { spec: { suspend: true } };
      const id = { namespace, name };
      const patch = { type: "merge", body } as const;
      await client.patch(resources.lockedCronJobs, id, patch, { timeoutMs: 60_000 });
      return begun;
    },
    running: (name) =>
      until(`a pod of ${name} runs`, PATIENCE_MS, async () =>
        scene.pods(name).find((pod) => pod.ranAt !== undefined && pod.goneAt === undefined),
      ),
    over: (name) =>
      until(`the run of ${name} is over`, PATIENCE_MS, async () =>
        scene.runs(name).find(({ overAt }) => overAt !== undefined),
      ),
    async inRedis(key) {
      const value = (await redis[0]?.command("GET", key)) as string | null | undefined;
      return value ?? undefined;
    },
    async [Symbol.asyncDispose]() {
      for (const replica of replicas) replica.resume();
      await Promise.all(replicas.map((replica) => replica.kill()));
      await seen[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
      await Promise.all([...ways.values()].map((way) => way[Symbol.asyncDispose]()));
      if (o.within !== undefined) return;
      await Promise.all(redis.map((server) => server.stop()));
      await cluster.stop();
    },
  };
  return scene;
}

export function manifest(name: string, o: Workload): LockedCronJob {
  const object = {
    apiVersion: "lockedcron.io/v1alpha1",
    kind: "LockedCronJob",
    metadata: { name, namespace: o.namespace ?? NAMESPACE },
    spec: {
      schedule: "@every 1s",
      lock: o.lock ?? {},
      jobTemplate: {
        spec: {
          ...o.job,
          template: {
            spec: {
              restartPolicy: "Never",
              terminationGracePeriodSeconds: 1,
              // An unreachable node's pods are told to go after two seconds instead of five minutes.
              tolerations: ["unreachable", "not-ready"].map((taint) => ({
                key: `node.kubernetes.io/${taint}`,
                operator: "Exists",
                effect: "NoExecute",
                tolerationSeconds: 2,
              })),
              containers: [
                {
                  name: "main",
                  image: "busybox:stable",
                  imagePullPolicy: "Never",
                  command: ["sh", "-c", o.script],
                },
              ],
              ...o.pod,
            },
          },
        },
      },
    },
  };
  return object as unknown as LockedCronJob;
}

/** The run is not over, and its lock is there. */
export async function held(scene: Scene, { run, overAt }: SeenRun): Promise<void> {
  if (overAt !== undefined) throw new Error(`${run.jobName} is over`);
  await until(
    `the lock of ${run.jobName} is held`,
    PATIENCE_MS,
    async () => (await scene.inRedis(run.lockKey)) === run.lockValue,
  );
}

/** What is wrong: a run that was over while a pod of it was not gone, or a lock that is left behind. */
export async function violations(scene: Scene, name: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const { run, overAt } of scene.runs(name)) {
    const own = () => scene.pods(name).filter(({ job }) => job === run.jobName);
    // Two watches: that of the pods may be behind that of the ledgers. Which came first is told by what they carry.
    await until(`the pods of ${run.jobName} are seen gone`, PATIENCE_MS, () =>
      Promise.resolve(own().every((pod) => pod.goneAt !== undefined)),
    ).catch(() => undefined);
    if (overAt === undefined) wrong.push(`${run.jobName} is not over`);
    for (const pod of own()) {
      if (pod.goneAt === undefined) wrong.push(`${pod.object.metadata.name} is not gone`);
      else if (overAt !== undefined && overAt < pod.goneAt) {
        wrong.push(`${run.jobName} was over before ${pod.object.metadata.name} was gone`);
      }
    }
    await until(
      `the lock of ${run.jobName} is released`,
      PATIENCE_MS,
      async () => (await scene.inRedis(run.lockKey)) === undefined,
    );
  }
  return wrong;
}
