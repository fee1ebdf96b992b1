import { createHash } from "node:crypto";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import {
  CONTROL_PLANE_PORTS,
  defineControlPlane,
  openControlPlane,
  startControlPlane,
} from "./control-plane.ts";
import type { ControlPlane } from "./control-plane.ts";
import { ClusterError } from "./errors.ts";
import { hireGuardian } from "./guardian.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { clusterDir } from "./paths.ts";
import { run } from "./run.ts";
import { claim, loadRecord, reap, removeCluster, saveRecord } from "./state.ts";
import type { ClusterRecord } from "./state.ts";
import { CONTROL_PLANE_TOOLS, ensureTools } from "./tools.ts";
import type {
  ControlPlaneCluster,
  ControlPlaneOptions,
  Kubeconfig,
  StartOptions,
  User,
} from "./types.ts";

export type * from "./types.ts";

/** The folder of a cluster's binaries, for PATH. */
async function linkBinaries(dir: string, files: readonly string[]): Promise<void> {
  await mkdir(join(dir, "bin"), { recursive: true });
  await Promise.all(files.map((file) => symlink(file, join(dir, "bin", basename(file)))));
}

async function issueUser(
  record: ClusterRecord,
  plane: ControlPlane,
  who: User,
): Promise<Kubeconfig> {
  const { user, groups = [] } = who;
  const hash = createHash("sha256")
    .update(JSON.stringify([user, groups]))
    .digest("hex")
    .slice(0, 8);
  const file = `user-${user.replaceAll(/[^a-zA-Z0-9-]/g, "_").slice(0, 60)}-${hash}`;
  const pair = await plane.certificates.issue(file, who);
  const { name, server } = { name: record.name, server: plane.server };
  return writeKubeconfig(join(clusterDir(record.name), `${file}.kubeconfig`), {
    cluster: name,
    server,
    ca: plane.certificates.ca,
    user,
    pair,
  });
}

async function toCluster(
  record: ClusterRecord,
  plane: ControlPlane,
  stop: () => Promise<void>,
): Promise<ControlPlaneCluster> {
  const dir = clusterDir(record.name);
  const kubectlPath = join(dir, "bin", "kubectl");
  const admin = plane.adminKubeconfig;
  return {
    name: record.name,
    mode: record.mode,
    dir,
    server: plane.server,
    kubeconfigPath: admin,
    adminKubeconfig: await readFile(admin, "utf8"),
    binDir: join(dir, "bin"),
    kubectlPath,
    kubectl: (args, { stdin, kubeconfig = admin, signal } = {}) =>
      run(
        kubectlPath,
        ["--kubeconfig", kubeconfig, "--cache-dir", join(dir, "kubectl-cache"), ...args],
        {
          stdin,
          signal,
        },
      ),
    userKubeconfig: (who) => issueUser(record, plane, who),
    etcd: plane.etcd,
    apiServer: plane.apiServer,
    controllerManager: plane.controllerManager,
    scheduler: plane.scheduler,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const silent = (): void => {};

/** Runs `body` on a new cluster's record under a guardian; a failure removes what was made so far. */
async function underGuard<T>(
  record: ClusterRecord,
  keep: boolean,
  body: (stop: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const guardian = await hireGuardian(record.name);
  const stop = async (): Promise<void> => {
    await removeCluster(record.name);
    await guardian.dismiss();
  };
  try {
    const watched = guardian.id ? { ...record, guardian: guardian.id } : record;
    await saveRecord(watched);
    const cluster = await body(stop);
    await saveRecord({ ...watched, owner: keep ? null : record.owner, ready: true });
    if (keep) await guardian.dismiss();
    return cluster;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startControlPlaneCluster(
  options: ControlPlaneOptions & StartOptions,
): Promise<ControlPlaneCluster> {
  const { log = silent, name, keep = false, flags = {} } = options;
  await reap(log);
  const binaries = await ensureTools(CONTROL_PLANE_TOOLS, log);
  const record = await claim({ name, mode: "control-plane", portCount: CONTROL_PLANE_PORTS });
  return underGuard(record, keep, async (stop) => {
    const place = { name: record.name, dir: clusterDir(record.name), ports: record.ports };
    await linkBinaries(place.dir, Object.values(binaries));
    await defineControlPlane(place, binaries, [flags]);
    const plane = await openControlPlane(place);
    await startControlPlane(plane);
    return toCluster(record, plane, stop);
  });
}

/**
 * Starts a cluster of its own; it ends with `stop()`, with `await using`, or with this process.
 * @throws ClusterError with a message for people when this machine lacks something
 */
export async function startCluster(
  options: { readonly mode: "control-plane" } & ControlPlaneOptions,
): Promise<ControlPlaneCluster> {
  return startControlPlaneCluster(options);
}

/** Takes up a cluster that another process started, as tests do with the shared one. Its `stop` leaves it running. */
export async function openCluster(name: string): Promise<ControlPlaneCluster> {
  const record = await loadRecord(name);
  if (!record)
    throw new ClusterError(`no cluster ${name}: make cluster-status lists those there are`);
  const place = { name, dir: clusterDir(name), ports: record.ports };
  return toCluster(record, await openControlPlane(place), async () => {});
}
