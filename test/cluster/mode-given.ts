import { readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ClusterError, codeOf, UsageError } from "./errors.ts";
import { kubectlOf, launch, leaveRunning, linkBinaries, silent } from "./lifecycle.ts";
import type { Stop } from "./lifecycle.ts";
import { findProgram } from "./packages.ts";
import { clusterDir } from "./paths.ts";
import { reasonOf, run } from "./run.ts";
import type { ClusterRecord } from "./state.ts";
import { ensureTools } from "./tools.ts";
import type { Cluster, ExistingOptions, KindCluster, KindOptions } from "./types.ts";
import { requestUser, serverOf } from "./user-request.ts";

/** The machine's own program where there is one, as it fits the clusters used here; built otherwise, which needs Go. */
async function findOrBuild(tool: "kubectl" | "kind", log: (line: string) => void): Promise<string> {
  return (await findProgram(tool)) ?? (await ensureTools([tool], log))[tool];
}

/** A cluster whose servers are not ours to run: seen through an administrator's kubeconfig in its folder. */
async function toGivenCluster<M extends "kind" | "existing">(
  record: ClusterRecord,
  mode: M,
  stop: Stop,
): Promise<Cluster & { readonly mode: M }> {
  const { name } = record;
  const dir = clusterDir(name);
  const kubeconfigPath = join(dir, "admin.kubeconfig");
  const kubectl = kubectlOf(dir, kubeconfigPath);
  return {
    name,
    mode,
    dir,
    server: await serverOf(kubectl),
    kubeconfigPath,
    adminKubeconfig: await readFile(kubeconfigPath, "utf8"),
    binDir: join(dir, "bin"),
    kubectlPath: join(dir, "bin", "kubectl"),
    kubectl,
    userKubeconfig: (who) => requestUser({ name, dir, kubectl }, who),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function writeAdmin(record: ClusterRecord, text: string): Promise<void> {
  await writeFile(join(clusterDir(record.name), "admin.kubeconfig"), text, { mode: 0o600 });
}

/**
 * A cluster that is already there, given by a kubeconfig (its current context). Nothing of it is started, stopped or deleted,
 * but for the requests by which `userKubeconfig` gets certificates; `stop` only forgets it.
 */
export async function startExistingMode(options: ExistingOptions): Promise<Cluster> {
  const { log = silent, kubeconfig } = options;
  // Never the default ~/.kube/config: a cluster that one only happens to have access to is not for tests.
  const path = kubeconfig ?? process.env["KUBECONFIG"];
  if (!path) {
    throw new UsageError("mode existing: set KUBECONFIG (or --kubeconfig) to the cluster to use");
  }
  const program = await findOrBuild("kubectl", log);
  return launch(options, { mode: "existing", portCount: 0 }, async (record, stop) => {
    await linkBinaries(clusterDir(record.name), [program]);
    const view = ["config", "view", "--raw", "--minify", "--flatten", "--kubeconfig", path];
    await writeAdmin(record, await run(program, view));
    const cluster = await toGivenCluster(record, "existing", stop);
    const probe = ["get", "--raw", "/readyz", "--request-timeout=10s"];
    await cluster.kubectl(probe).catch((error: unknown) => {
      throw new ClusterError(`${path}: no answer from ${cluster.server}: ${reasonOf(error)}`);
    });
    return cluster;
  });
}

export async function openExistingMode(record: ClusterRecord): Promise<Cluster> {
  return toGivenCluster(record, "existing", leaveRunning);
}

async function checkDocker(): Promise<void> {
  try {
    await run("docker", ["info"]);
  } catch (error) {
    const why = codeOf(error) === "ENOENT" ? "docker is not installed" : reasonOf(error);
    throw new ClusterError(
      `mode kind needs a running Docker engine, but: ${why}\nStart it, or use --mode nodes (root) or --mode simulated (no root)`,
    );
  }
}

/** kind's own description of a cluster: one control plane, the rest workers. */
function kindConfig(nodes: number): string {
  const roles = Array.from({ length: nodes }, (_, index) =>
    index === 0 ? "control-plane" : "worker",
  );
  return JSON.stringify({
    apiVersion: "kind.x-k8s.io/v1alpha4",
    kind: "Cluster",
    nodes: roles.map((role) => ({ role })),
  });
}

const kindName = (cluster: string): string => `lockedcron-${cluster}`;

async function toKindCluster(record: ClusterRecord, stop: Stop): Promise<KindCluster> {
  const cluster = await toGivenCluster(record, "kind", stop);
  return {
    ...cluster,
    loadImage: async (archive) => {
      const words = ["load", "image-archive", archive, "--name", kindName(record.name)];
      await run(join(cluster.binDir, "kind"), words);
    },
    killContainer: async (node, id) => {
      const task = ["tasks", "kill", "--signal", "SIGKILL", id.replace(/^containerd:\/\//, "")];
      await run("docker", ["exec", node, "ctr", "--namespace", "k8s.io", ...task]);
    },
  };
}

/** A cluster in Docker containers, by kind. */
export async function startKindMode(options: KindOptions): Promise<KindCluster> {
  const { log = silent, nodes = 1, image } = options;
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > 10) {
    throw new UsageError(`--nodes ${nodes}: must be a whole number from 1 to 10`);
  }
  await checkDocker();
  const kubectl = await findOrBuild("kubectl", log);
  const kind = await findOrBuild("kind", log);
  const wanted = {
    mode: "kind",
    portCount: 0,
    reserve: async (_: unknown, dir: string) => ({
      host: { kind: { name: kindName(basename(dir)), program: kind } },
    }),
  } as const;
  return launch(options, wanted, async (record, stop) => {
    const dir = clusterDir(record.name);
    await linkBinaries(dir, [kubectl, kind]);
    const config = join(dir, "kind.json");
    await writeFile(config, kindConfig(nodes));
    log("kind creates the cluster (the first time it pulls the node image)");
    const where = ["--name", kindName(record.name), "--kubeconfig", join(dir, "admin.kubeconfig")];
    const how = ["--config", config, "--wait", "180s", ...(image ? ["--image", image] : [])];
    await run(kind, ["create", "cluster", ...where, ...how]);
    return toKindCluster(record, stop);
  });
}

export async function openKindMode(record: ClusterRecord): Promise<KindCluster> {
  return toKindCluster(record, leaveRunning);
}
