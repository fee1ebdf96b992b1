/** A cluster with real nodes, the image on them, and the chart: installed, changed and removed as people do. */
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";
import { parseSchedule } from "../../src/domain/schedule/index.ts";
import type { KubeObject } from "../../src/api/types.ts";
import { namespaces, pods, type KubeClient, type ResourceType } from "../../src/kube/index.ts";
import { openWitness, type Witness } from "../chaos/ticks.ts";
import { CHART, openHelm, type Helm, type HelmName } from "../chart/helm.ts";
import {
  startCluster,
  type Cluster,
  type ClusterNode,
  type ComponentFlags,
  type NodesCluster,
} from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { run } from "../cluster/run.ts";
import { clientOf } from "../crd/fixture.ts";
import { accountOf, type Account } from "../demo/account.ts";
import { buildImage } from "../image/build.ts";
import { standIn } from "../image/stand-ins.ts";

export const SYSTEM = "lockedcron-system";
export const WORK = "work";
const IMAGE = "ghcr.io/lockedcron/lockedcron";
const REDIS_IMAGE = "docker.io/valkey/valkey:9.0.8-alpine";
/** Pods start slowly on a machine that runs other suites as well. */
export const PATIENCE_MS = 240_000;

export interface Pod extends KubeObject {
  readonly metadata: KubeObject["metadata"] & { readonly deletionTimestamp?: string };
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly image: string }[];
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime?: string;
    }[];
    readonly containerStatuses?: readonly {
      readonly containerID?: string;
      readonly restartCount: number;
      readonly state?: { readonly running?: { readonly startedAt: string } };
    }[];
  };
}

const podType = pods as ResourceType<Pod>;

export interface SiteOptions {
  readonly nodes?: number;
  readonly helm?: HelmName;
  /** Flags of the control plane. */
  readonly flags?: ComponentFlags;
  /** Archives of further images for the nodes; not on kind. */
  readonly images?: readonly string[];
  /** Namespaces made beforehand, with the standard `restricted`; default: SYSTEM and WORK. */
  readonly namespaces?: readonly string[];
  readonly log?: (line: string) => void;
}

export interface Site extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly client: KubeClient;
  readonly helm: Helm;
  /** The cluster whose servers and nodes are ours to break. @throws Error on kind */
  built(): NodesCluster;
  /** Installs or upgrades; returns when Helm does, not when it runs. `chart`: this project's, if no other is given. */
  install(values?: object, chart?: string): Promise<void>;
  uninstall(): Promise<void>;
  helmTest(): Promise<string>;
  /** Until every operator replica of the newest version is ready, and no other is left. */
  operatorReady(): Promise<void>;
  pods(component: "operator" | "redis"): Promise<Pod[]>;
  /** SIGKILL to its container, by the node: nobody is told before. */
  kill(pod: Pod): Promise<void>;
  nodeOf(pod: Pod): ClusterNode;
  witness(): Promise<Witness>;
}

/** What a kind of cluster adds: how images get onto its nodes, and how a container is killed behind everybody's back. */
interface Ground extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly built: NodesCluster | undefined;
  killContainer(node: string, id: string): Promise<void>;
}

/** Real nodes of this machine, with stand-ins for what is pulled elsewhere. */
async function builtGround(o: SiteOptions, log: (line: string) => void): Promise<Ground> {
  const name = `${IMAGE}:e2e`;
  const images = [
    await buildImage({ name, stages: "offline", version: "e2e", log }),
    await standIn("valkey", REDIS_IMAGE),
    ...(o.images ?? []),
  ];
  const cluster = await startCluster({
    mode: "nodes",
    nodes: o.nodes ?? 1,
    log,
    flags: o.flags,
    // Changed Secrets reach pods sooner than after a minute.
    kubelet: { syncFrequency: "5s" },
  });
  for (const image of images) await cluster.loadImage(image);
  return {
    cluster,
    built: cluster,
    killContainer: (node, id) => nodeNamed(cluster, node).killContainer(id),
    [Symbol.asyncDispose]: () => cluster.stop(),
  };
}

/** kind, for machines with Docker: everything is pulled, and built by Docker. KIND_IMAGE picks the version of Kubernetes. */
async function kindGround(o: SiteOptions, log: (line: string) => void): Promise<Ground> {
  const cluster = await startCluster({
    mode: "kind",
    nodes: o.nodes ?? 1,
    log,
    image: process.env["KIND_IMAGE"],
  });
  const name = `${IMAGE}:e2e`;
  const archive = join(cluster.dir, "image.tar");
  await run("docker", ["build", "--tag", name, ROOT]);
  await run("docker", ["save", "--output", archive, name]);
  await cluster.loadImage(archive);
  return {
    cluster,
    built: undefined,
    killContainer: cluster.killContainer,
    [Symbol.asyncDispose]: () => cluster.stop(),
  };
}

function nodeNamed(cluster: NodesCluster, wanted: string | undefined): ClusterNode {
  const node = cluster.nodes.find(({ name }) => name === wanted);
  if (node === undefined) throw new Error(`there is no node ${wanted}`);
  return node;
}

/** Whether the suite runs on kind (LOCKEDCRON_E2E=kind) and not on nodes of its own. */
export const ON_KIND = process.env["LOCKEDCRON_E2E"] === "kind";

export async function openSite(o: SiteOptions = {}): Promise<Site> {
  const { log = (line) => console.error(`[e2e] ${line}`) } = o;
  await using stack = new AsyncDisposableStack();
  const helm = await openHelm(o.helm);
  const ground = stack.use(await (ON_KIND ? kindGround : builtGround)(o, log));
  const { cluster } = ground;
  const client = stack.use(clientOf(cluster.adminKubeconfig));
  for (const name of o.namespaces ?? [SYSTEM, WORK]) {
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await client.create(namespaces, { metadata: { name, labels } });
  }
  const release = ["lockedcron", "--namespace", SYSTEM];
  const { kubeconfigPath: kubeconfig } = cluster;

  function built(): NodesCluster {
    if (ground.built === undefined) throw new Error("not on kind: its servers are not ours");
    return ground.built;
  }

  const held = stack.move();
  return {
    cluster,
    client,
    helm,
    built,
    async install(values = {}, chart = CHART) {
      const stdin = JSON.stringify({ image: { tag: "e2e" }, ...values });
      const args = ["upgrade", "--install", ...release, chart, "--values=-"];
      await helm(args, { kubeconfig, stdin });
    },
    async uninstall() {
      await helm(["uninstall", ...release, "--timeout=5m"], { kubeconfig });
    },
    helmTest: () => helm(["test", ...release, "--logs", "--timeout=5m"], { kubeconfig }),
    async operatorReady() {
      const args = ["rollout", "status", "deployment/lockedcron", "--namespace", SYSTEM];
      await cluster.kubectl([...args, `--timeout=${PATIENCE_MS / 1000}s`]);
    },
    async pods(component) {
      const labelSelector = `app.kubernetes.io/component=${component}`;
      return (await client.list(podType, { namespace: SYSTEM, labelSelector })).items;
    },
    async kill(pod) {
      const id = pod.status?.containerStatuses?.[0]?.containerID;
      if (id === undefined) throw new Error(`${pod.metadata.name} has no container yet`);
      await ground.killContainer(pod.spec.nodeName ?? "", id);
    },
    nodeOf: (pod) => nodeNamed(built(), pod.spec.nodeName),
    witness: () => openWitness(client, WORK),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

export const isReady = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp === undefined &&
  pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ===
    true;

/** From the start of its container to its being ready, as the kubelet tells it: whole seconds. */
export function startSeconds({ status }: Pod): number {
  const ready = status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "";
  const started = status?.containerStatuses?.[0]?.state?.running?.startedAt ?? "";
  return (Date.parse(ready) - Date.parse(started)) / 1000;
}

/** Until so many pods of a component are ready, and none else is there. */
export function allReady(site: Site, component: "operator" | "redis", count: number) {
  return until(`${count} pods of ${component} are ready`, PATIENCE_MS, async () => {
    const found = await site.pods(component);
    return found.length === count && found.every(isReady);
  });
}

/** Under the Pod Security Standard `restricted`, over in a moment. */
export function workload(name: string, schedule: string, more: object = {}): string {
  return JSON.stringify({
    apiVersion: "lockedcron.io/v1alpha1",
    kind: "LockedCronJob",
    metadata: { name, namespace: WORK },
    spec: {
      schedule,
      ...more,
      jobTemplate: {
        spec: {
          template: {
            spec: {
              restartPolicy: "Never",
              securityContext: {
                runAsNonRoot: true,
                runAsUser: 65_534,
                seccompProfile: { type: "RuntimeDefault" },
              },
              containers: [
                {
                  name: "run",
                  image: "busybox:1.36",
                  imagePullPolicy: "IfNotPresent",
                  args: ["echo", "$(LOCKEDCRON_RUN_ID)"],
                  securityContext: {
                    allowPrivilegeEscalation: false,
                    readOnlyRootFilesystem: true,
                    capabilities: { drop: ["ALL"] },
                  },
                },
              ],
            },
          },
        },
      },
    },
  });
}

/** What became of every tick that was due from the first ledger until `at`. */
export function account(witness: Witness, name: string, expression: string, at: number): Account {
  const parsed = parseSchedule(expression);
  if (!parsed.ok) throw new Error(`${expression}: ${parsed.message}`);
  const history = witness.history(name);
  const anchor = history[0]?.ledger.anchor ?? at;
  const jobs = witness.jobs(name);
  return accountOf({ name, schedule: parsed.schedule, anchor, until: at, history, jobs });
}
