/** Everything that the demo needs, set up in order and taken down in the reverse. */
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { keyOf } from "../../src/api/names.ts";
import type { LockedCronJob } from "../../src/api/types.ts";
import { parseSpec, type Schedule } from "../../src/domain/schedule/index.ts";
import type { KubeClient } from "../../src/kube/index.ts";
import { createQuorumLock, type QuorumLock } from "../../src/lock/index.ts";
import { openWitness, type Witness } from "../chaos/ticks.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { RUN_FOR } from "../cluster/simulation.ts";
import { clientOf, EXAMPLES, installCrd, RBAC } from "../crd/fixture.ts";
import type { LogLine } from "../harness/replica.ts";
import { startRedisNodes, type RedisServer } from "../redis/server.ts";
import { createPlayer, type Player } from "./cast.ts";
import type { DemoMode } from "./flags.ts";
import { playPods } from "./played-pods.ts";

export const NAMESPACE = "default";
export const REPLICAS = ["alpha", "bravo", "charlie"] as const;
const REDIS_NODES = 5;
/** How long a pod runs where none really does; as long as the samples' own. */
const PLAYED_SECONDS = 3;
/** The group that deploy/rbac.yaml names for replicas outside of the cluster. */
const GROUP = "lockedcron:operators";

export interface Sample {
  readonly name: string;
  readonly expression: string;
  readonly schedule: Schedule;
}

export interface Stage extends AsyncDisposable {
  readonly cluster: ControlPlaneCluster;
  readonly mode: DemoMode;
  readonly client: KubeClient;
  readonly redis: readonly RedisServer[];
  /** Only for looking. */
  readonly lock: QuorumLock;
  readonly players: readonly Player[];
  readonly witness: Witness;
  readonly samples: readonly Sample[];
  /** Applies them: from now on ticks are due. */
  applySamples(): Promise<void>;
  /** What replicas log from now on. */
  onLine(listener: (replica: string, line: LogLine) => void): void;
  /** Logs of the replicas, credentials. */
  readonly dir: string;
}

/** Runs one step of the set-up, which tells at its end what is there now. */
export type Step = <T>(name: string, run: () => Promise<readonly [T, string]>) => Promise<T>;

export interface StageOptions {
  readonly mode: DemoMode;
  /** Of the cluster; default: chosen. */
  readonly name: string | undefined;
  readonly signal: AbortSignal;
  readonly step: Step;
  /** What a long step is at. */
  busy(line: string): void;
}

const CLUSTER_TEXT: Readonly<Record<DemoMode, string>> = {
  nodes: "one node; pods really run (containerd, kubelet)",
  simulated: "pods are simulated (kwok): nothing is executed",
  "control-plane": "no nodes: the demo itself says that pods have run",
};

export async function openStage(o: StageOptions): Promise<Stage> {
  const { mode, signal, step } = o;
  const listeners = new Set<(replica: string, line: LogLine) => void>();
  const heard = (replica: string, line: LogLine): void => {
    for (const listener of listeners) listener(replica, line);
  };
  await using stack = new AsyncDisposableStack();

  const cluster = await step("cluster", async () => {
    const starting = start(mode, o.name, o.busy);
    return [stack.use(await orAborted(starting, signal)), CLUSTER_TEXT[mode]] as const;
  });
  const client = stack.use(clientOf(cluster.adminKubeconfig));
  // Within the cluster's folder: whatever happens to the demo, it goes with it.
  const dir = join(cluster.dir, "demo");
  await mkdir(dir);

  await step("api", async () => {
    await installCrd(cluster);
    await cluster.kubectl(["apply", "--filename", "-"], { stdin: withGroup(await text(RBAC)) });
    return [undefined, "kubectl apply -f crds/ -f deploy/rbac.yaml"] as const;
  });
  const redis = await step("redis", async () => {
    const servers = await startRedisNodes(REDIS_NODES, { within: dir });
    stack.defer(async () => void (await Promise.all(servers.map((server) => server.stop()))));
    return [servers, `${REDIS_NODES} redis-server, none knows of another`] as const;
  });
  const urls = redis.map(({ url }) => url);
  const lock = stack.use(createQuorumLock({ nodes: urls, clientName: "lockedcron-demo" }));
  const players = await step("operator", async () => {
    const cast = await Promise.all(
      REPLICAS.map((name) => hire({ name, cluster, redis: urls, dir, heard })),
    );
    for (const player of cast) stack.use(player);
    await Promise.all(cast.map((player) => player.start()));
    return [
      cast,
      `${REPLICAS.join(", ")}: 3 processes with the roles of deploy/rbac.yaml`,
    ] as const;
  });
  // ORDER: before the samples are there, so that no Job can be missed.
  const witness = stack.use(await openWitness(client, NAMESPACE));
  if (mode === "control-plane") {
    stack.use(await playPods(client, NAMESPACE, PLAYED_SECONDS * 1_000));
  }
  const manifests = await readSamples();
  const held = stack.move();
  return {
    cluster,
    mode,
    client,
    redis,
    lock,
    players,
    witness,
    dir,
    samples: manifests.map(sampleOf),
    applySamples: () => applySamples(cluster, mode, manifests),
    onLine: (listener) => void listeners.add(listener),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

function start(
  mode: DemoMode,
  name: string | undefined,
  log: (line: string) => void,
): Promise<ControlPlaneCluster> {
  if (mode === "nodes") return startCluster({ mode, name, nodes: 1, log });
  if (mode === "simulated") return startCluster({ mode, name, nodes: 1, log });
  return startCluster({ mode, name, log });
}

/** A cluster that is being started cannot be called off: its guardian removes it when this process ends. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function hire(o: {
  readonly name: string;
  readonly cluster: ControlPlaneCluster;
  readonly redis: readonly string[];
  readonly dir: string;
  heard(replica: string, line: LogLine): void;
}): Promise<Player> {
  const { name, cluster, redis, dir } = o;
  const credentials = await cluster.userKubeconfig({ user: `lockedcron-${name}`, groups: [GROUP] });
  return createPlayer({
    name,
    kubeconfig: credentials.text,
    server: new URL(cluster.server),
    redis,
    dir,
    onLine: (line) => o.heard(name, line),
  });
}

const text = (file: string): Promise<string> => readFile(file, "utf8");

/** The subjects for client certificates, which the file carries as comments. */
function withGroup(rbac: string): string {
  return rbac.replace(/^( *)# (- kind: Group| {2}(?:apiGroup|name): )/gm, "$1$2");
}

async function readSamples(): Promise<LockedCronJob[]> {
  const files = (await readdir(EXAMPLES)).filter((file) => file.endsWith(".yaml")).sort();
  const read = async (file: string): Promise<LockedCronJob> =>
    parse(await text(join(EXAMPLES, file))) as LockedCronJob;
  return Promise.all(files.map(read));
}

function sampleOf({ metadata, spec }: LockedCronJob): Sample {
  const parsed = parseSpec(spec, keyOf(metadata.namespace, metadata.name));
  if (!parsed.ok) throw new Error(`${metadata.name}: ${parsed.message}`);
  return { name: metadata.name, expression: spec.schedule ?? "", schedule: parsed.schedule };
}

async function applySamples(
  cluster: ControlPlaneCluster,
  mode: DemoMode,
  manifests: readonly LockedCronJob[],
): Promise<void> {
  if (mode === "nodes") {
    await cluster.kubectl(["apply", "--filename", EXAMPLES]);
    return;
  }
  const stdin = manifests.map((manifest) => stringify(playedFor(manifest))).join("---\n");
  await cluster.kubectl(["apply", "--filename", "-"], { stdin });
}

/** The sample with simulated pods that last as long as its real ones would. */
function playedFor(manifest: LockedCronJob): LockedCronJob {
  const { jobTemplate } = manifest.spec;
  const { template } = jobTemplate.spec;
  const annotations = { ...template.metadata?.annotations, [RUN_FOR]: `${PLAYED_SECONDS}s` };
  const played = { ...template, metadata: { ...template.metadata, annotations } };
  const spec = { ...jobTemplate.spec, template: played };
  return { ...manifest, spec: { ...manifest.spec, jobTemplate: { ...jobTemplate, spec } } };
}
