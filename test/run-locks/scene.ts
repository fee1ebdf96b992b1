/** Two real nodes, three Redis nodes, replicas of the operator, and a witness of every pod from its first version on. */
import { LEDGER_ANNOTATION, ledgerName, NAME_LABEL } from "../../src/api/names.ts";
import type { KubeObject, LockedCronJob, LockSpec } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { parseLedger } from "../../src/domain/ledger-json.ts";
import { isOver, type Run } from "../../src/domain/ledger.ts";
import type { KubeClient, ResourceType } from "../../src/kube/index.ts";
import { openStream } from "../chaos/stream.ts";
import { startCluster, type NodesCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd } from "../crd/fixture.ts";
import { startReplica, type Replica } from "../harness/replica.ts";
import { startRedisNodes, type RedisServer } from "../redis/server.ts";

export const NAMESPACE = "runs";
/** Containers start slowly on a machine that has much else to do. */
export const PATIENCE_MS = 240_000;

export interface Pod extends KubeObject {
  spec: { nodeName?: string };
  status?: {
    phase?: string;
    containerStatuses?: {
      containerID?: string;
      restartCount: number;
      state?: { running?: object };
    }[];
  };
}

export interface SeenPod {
  name: string;
  job: string;
  /** As last seen. */
  object: Pod;
  /** resourceVersion at which it was first seen to run; at which it was terminal or gone. */
  ranAt?: number;
  goneAt?: number;
}

export interface SeenRun {
  name: string;
  run: Run;
  /** resourceVersion of the ledger that first had it; that first had it over or not at all. */
  begunAt: number;
  overAt?: number;
}

const podType = resources.pods as unknown as ResourceType<Pod>;

export interface Scene extends AsyncDisposable {
  cluster: NodesCluster;
  client: KubeClient;
  redis: readonly RedisServer[];
  replicas: Replica[];
  /** Starts a replica and waits until it takes ticks; the test never runs two under one name. */
  start(name: string): Promise<Replica>;
  pods(name: string): SeenPod[];
  runs(name: string): SeenRun[];
  /** Starts one run of a LockedCronJob that has this container and Job spec. */
  begin(name: string, o: Workload): Promise<SeenRun>;
  /** The first pod of it that runs. */
  running(name: string): Promise<SeenPod>;
  over(name: string): Promise<SeenRun>;
  /** Of Redis: the value that the key bears on the first node. */
  inRedis(key: string): Promise<string | undefined>;
}

export interface Workload {
  /** Of `sh -c`. */
  script: string;
  job?: Record<string, unknown>;
  pod?: Record<string, unknown>;
  lock?: LockSpec;
}

export async function openScene(replicaCount = 2, redisCount = 3): Promise<Scene> {
  const cluster = await startCluster({
    mode: "nodes",
    nodes: 2,
    // Losing a node is noticed within seconds instead of a minute.
    kubelet: { nodeLeaseDurationSeconds: 4, nodeStatusUpdateFrequency: "1s" },
    flags: {
      controllerManager: { "node-monitor-grace-period": "6s", "node-monitor-period": "1s" },
    },
  });
  const client = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
  await cluster.kubectl(["create", "namespace", NAMESPACE]);
  const redis = await startRedisNodes(redisCount);
  const pods = new Map<string, SeenPod>();
  const runs = new Map<string, SeenRun>();
  const streams = [
    await openStream(client, podType, NAMESPACE, (change, pod) => {
      const { uid, labels = {}, resourceVersion } = pod.metadata;
      if (labels[NAME_LABEL] === undefined) return;
      const job = labels["batch.kubernetes.io/job-name"] ?? "";
      const seen = pods.get(uid) ?? { name: labels[NAME_LABEL], job, object: pod };
      seen.object = pod;
      const { phase } = pod.status ?? {};
      if (phase === "Running") seen.ranAt ??= Number(resourceVersion);
      const terminal = phase === "Succeeded" || phase === "Failed";
      if (change === "DELETED" || terminal) seen.goneAt ??= Number(resourceVersion);
      pods.set(uid, seen);
    }),
    await openStream(client, resources.leases, NAMESPACE, (_, lease) => {
      const parsed = parseLedger(lease.metadata.annotations?.[LEDGER_ANNOTATION]);
      if (!parsed.ok) return;
      const version = Number(lease.metadata.resourceVersion);
      const name = lease.metadata.name.slice(ledgerName("").length);
      for (const run of parsed.ledger.runs) {
        const seen = runs.get(run.lockValue) ?? { name, run, begunAt: version };
        seen.run = run;
        if (isOver(run)) seen.overAt ??= version;
        runs.set(run.lockValue, seen);
      }
      for (const seen of runs.values()) {
        const there = parsed.ledger.runs.some((run) => run.lockValue === seen.run.lockValue);
        if (seen.name === name && !there) seen.overAt ??= version;
      }
    }),
  ];
  const replicas: Replica[] = [];
  for (let n = 0; n < replicaCount; n++) replicas.push(await start(`replica-${n}`));

  async function start(name: string): Promise<Replica> {
    const replica = await startReplica({
      name,
      kubeconfig: cluster.kubeconfigPath,
      redis: redis.map(({ url }) => url),
      namespace: NAMESPACE,
      flags: ["--membership-lease-seconds=3", "--take-over-after-ms=1000"],
    });
    await replica.line("takes ticks", ({ event }) => event === "Started", PATIENCE_MS);
    return replica;
  }

  const scene: Scene = {
    cluster,
    client,
    redis,
    replicas,
    start,
    pods: (name) => [...pods.values()].filter((pod) => pod.name === name),
    runs: (name) => [...runs.values()].filter((run) => run.name === name),
    async begin(name, o) {
      await client.create(resources.lockedCronJobs, manifest(name, o), { timeoutMs: 60_000 });
      const begun = await until(`a run of ${name}`, PATIENCE_MS, async () =>
        scene.runs(name).find(({ run }) => run.jobUID !== undefined),
      );
      // One run is enough; what is active goes on.
      const body = { spec: { suspend: true } };
      const id = { namespace: NAMESPACE, name };
      await client.patch(
        resources.lockedCronJobs,
        id,
        { type: "merge", body },
        { timeoutMs: 60_000 },
      );
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
      await Promise.all(streams.map((stream) => stream.close()));
      await client[Symbol.asyncDispose]();
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
    metadata: { name, namespace: NAMESPACE },
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

/** What is wrong: a run that was over while a pod of it was not gone, or a lock that is left behind. */
export async function violations(scene: Scene, name: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const { run, overAt } of scene.runs(name)) {
    if (overAt === undefined) wrong.push(`${run.jobName} is not over`);
    for (const pod of scene.pods(name).filter(({ job }) => job === run.jobName)) {
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
