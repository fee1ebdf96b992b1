/**
 * What the tests of this folder share: a cluster, Redis nodes, and labs: a namespace each with replicas of its own, so
 * that tests of one file can run side by side without meeting.
 */
import { KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, inject, vi } from "vitest";
import { LAUNCH_FINALIZER, keyOf } from "../../src/api/names.ts";
import type { Job, LockedCronJob, LockedCronJobSpec } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { rankOf } from "../../src/domain/election.ts";
import {
  createKubeClient,
  hasReason,
  namespaces,
  type KubeClient,
  type KubeObject,
} from "../../src/kube/index.ts";
import { openCluster, type Cluster } from "../cluster/cluster.ts";
import { installCrd } from "../crd/fixture.ts";
import type { Faults } from "../harness/faults.ts";
import { startReplica, type Replica } from "../harness/replica.ts";
import { startRedisNodes, type RedisServer } from "../redis/server.ts";
import { openWitness, type Witness } from "./ticks.ts";

// Tests mostly wait for the next second. The time-outs are for machines that have much else to do: nothing is timed here.
vi.setConfig({ maxConcurrency: 10, testTimeout: 300_000, hookTimeout: 300_000 });

export interface ReplicaChoices {
  faults?: Faults;
  flags?: readonly string[];
  kubeconfig?: string;
  redis?: readonly string[];
  env?: Record<string, string>;
  /** Namespaces it watches; default: the lab's. */
  watch?: readonly string[];
}

export interface Lab extends AsyncDisposable {
  readonly namespace: string;
  readonly seen: Witness;
  key(name: string): string;
  /** Starts a replica for this namespace alone, and waits until it takes ticks. */
  replica(name: string, choices?: ReplicaChoices): Promise<Replica>;
  /** As `replica`, without the wait. */
  launch(name: string, choices?: ReplicaChoices): Promise<Replica>;
  create(name: string, spec?: SpecChange): Promise<LockedCronJob>;
  patch(name: string, spec: object): Promise<void>;
  remove(name: string): Promise<void>;
  job(name: string): Promise<Job | undefined>;
  /** Until so many Jobs more than now were created. */
  more(name: string, count: number): Promise<void>;
  /** Suspends them (default: all there are), waits until everything has settled, and says which rules were broken. */
  violationsAtEnd(...names: string[]): Promise<string[]>;
}

export interface World extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly client: KubeClient;
  readonly redis: readonly RedisServer[];
  /** `system`: the namespace in which the replicas know of each other; default: the lab's own. */
  lab(system?: string): Promise<Lab>;
}

export type SpecChange = Partial<Omit<LockedCronJobSpec, "jobTemplate">> & {
  /** Over the Job's spec. */
  job?: Record<string, unknown>;
};

/** Signs of life are given each second, and claims are taken over soon. Rather more time than quick machines need. */
const QUICK = ["--membership-lease-seconds=3", "--take-over-after-ms=1000"];
const REDIS_NODES = 5;
/** A replica starts in a second; on a machine with many other things to do it takes its time. */
const START_MS = 90_000;
const PATIENT = { timeoutMs: 60_000 };

export async function openWorld(
  cluster: Cluster,
  options: { redis?: readonly RedisServer[] } = {},
): Promise<World> {
  const client = clientOf(cluster.kubeconfigPath);
  const redis = options.redis ?? (await startRedisNodes(REDIS_NODES));
  return {
    cluster,
    client,
    redis,
    lab: (system) => openLab({ cluster, client, redis }, system),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await Promise.all(redis.map((server) => server.stop()));
    },
  };
}

let shared: World | undefined;
let isUsed = false;

/** The world of a test file, on the cluster that all share; the CRD is there. */
export function useWorld(): () => World {
  if (!isUsed) {
    isUsed = true;
    beforeAll(async () => {
      const cluster = await openCluster(inject("cluster").name);
      shared = await openWorld(cluster);
      const { client } = shared;
      const served = client.list(resources.lockedCronJobs, { namespace: "default" });
      await served.catch(() => installCrd(cluster));
    });
    afterAll(() => shared?.[Symbol.asyncDispose]());
  }
  return () => {
    if (shared === undefined) throw new Error("the world is there once the tests begin");
    return shared;
  };
}

export function clientOf(kubeconfigPath: string): KubeClient {
  return createKubeClient({
    config() {
      const config = new KubeConfig();
      config.loadFromFile(kubeconfigPath);
      return config;
    },
    userAgent: "test-chaos",
  });
}

function isSame(flag: string, other: string): boolean {
  return flag.split("=")[0] === other.split("=")[0];
}

async function openLab(
  world: Pick<World, "cluster" | "client" | "redis">,
  system: string | undefined,
): Promise<Lab> {
  const { client, cluster } = world;
  const made = (await client.raw({
    method: "POST",
    path: "/api/v1/namespaces",
    body: { apiVersion: "v1", kind: "Namespace", metadata: { generateName: "chaos-" } },
  })) as { metadata: { name: string } };
  const namespace = made.metadata.name;
  const seen = await openWitness(client, namespace);
  const replicas: Replica[] = [];

  async function launch(name: string, choices: ReplicaChoices = {}): Promise<Replica> {
    const replica = await startReplica({
      name,
      kubeconfig: choices.kubeconfig ?? cluster.kubeconfigPath,
      redis: choices.redis ?? world.redis.map(({ url }) => url),
      namespace: system ?? namespace,
      flags: [
        `--watch-namespaces=${(choices.watch ?? [namespace]).join(",")}`,
        ...QUICK.filter((quick) => !choices.flags?.some((own) => isSame(own, quick))),
        ...(choices.flags ?? []),
      ],
      ...(choices.faults === undefined ? {} : { faults: choices.faults }),
      ...(choices.env === undefined ? {} : { env: choices.env }),
    });
    replicas.push(replica);
    return replica;
  }

  const lab: Lab = {
    namespace,
    seen,
    key: (name) => keyOf(namespace, name),
    launch,
    async replica(name, choices) {
      const replica = await launch(name, choices);
      await replica.line("takes ticks", ({ event }) => event === "Started", START_MS);
      return replica;
    },
    create: (name, spec) =>
      client.create(resources.lockedCronJobs, manifest(namespace, name, spec), PATIENT),
    async patch(name, spec) {
      await client.patch(
        resources.lockedCronJobs,
        { namespace, name },
        { type: "merge", body: { spec } },
        PATIENT,
      );
    },
    remove: (name) => client.delete(resources.lockedCronJobs, { namespace, name }),
    async job(name) {
      const { items } = await client.list(resources.jobs, {
        namespace,
        fieldSelector: `metadata.name=${name}`,
      });
      return items[0];
    },
    async more(name, count) {
      await seen.created(name, seen.jobs(name).length + count);
    },
    async violationsAtEnd(...names) {
      const all = names.length === 0 ? [...seen.names()] : names;
      await Promise.all(all.map((name) => lab.patch(name, { suspend: true })));
      await Promise.all(all.map((name) => seen.settled(name)));
      // ORDER: and all at the same moment. One with nothing open may have claimed a tick since, before it was told that it is
      // suspended.
      await seen.until("all are settled", () => all.every(seen.isSettled));
      return names.length === 0 ? seen.violations() : names.flatMap((n) => seen.violations(n));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(replicas.map((replica) => replica.kill()));
      await seen[Symbol.asyncDispose]();
      await client.delete(namespaces, { name: namespace }).catch((error: unknown) => {
        if (!hasReason(error, "NotFound")) throw error;
      });
    },
  };
  return lab;
}

/** Its Job is done as soon as the Job controller sees it, without a pod. */
export const FINISHES_AT_ONCE = { completions: 0, parallelism: 0 };
/** Its Job never ends, and has no pods. */
export const NEVER_FINISHES = { suspend: true };

export function manifest(
  namespace: string,
  name: string,
  { job = FINISHES_AT_ONCE, ...spec }: SpecChange = {},
): LockedCronJob {
  const object = {
    apiVersion: "lockedcron.io/v1alpha1",
    kind: "LockedCronJob",
    metadata: { name, namespace },
    spec: {
      schedule: "@every 1s",
      ...spec,
      jobTemplate: {
        spec: {
          ...job,
          template: {
            spec: {
              restartPolicy: "Never",
              containers: [{ name: "main", image: "none.invalid/none" }],
            },
          },
        },
      },
    },
  };
  return object as unknown as LockedCronJob;
}

/**
 * A name for which these replicas rank in this order and before all the others, so that the first launches while it lives and
 * the second when it does not.
 */
export function nameFor(
  namespace: string,
  prefix: string,
  order: readonly string[],
  others: readonly string[] = [],
): string {
  const all = [...order, ...others];
  for (let i = 0; ; i++) {
    const name = `${prefix}-${i}`;
    const key = keyOf(namespace, name);
    if (order.every((replica, rank) => rankOf(replica, all, key) === rank)) return name;
  }
}

export function conditionOf(object: LockedCronJob | undefined, type: string) {
  return object?.status?.conditions?.find((condition) => condition.type === type);
}

export function hasLaunchFinalizer(object: KubeObject | undefined): boolean {
  return object?.metadata.finalizers?.includes(LAUNCH_FINALIZER) ?? false;
}
