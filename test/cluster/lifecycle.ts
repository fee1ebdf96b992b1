import { createHash } from "node:crypto";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ControlPlane, ControlPlanePlace } from "./control-plane.ts";
import { hireGuardian } from "./guardian.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { clusterDir } from "./paths.ts";
import { run } from "./run.ts";
import { claim, reap, removeCluster, saveRecord } from "./state.ts";
import type { Claim, ClusterRecord } from "./state.ts";
import type { Cluster, ControlPlaneCluster, Kubeconfig, StartOptions, User } from "./types.ts";

/** Ends the cluster that is being started. */
export type Stop = () => Promise<void>;

export const leaveRunning: Stop = async () => {};
export const silent = (): void => {};

/**
 * Starts a cluster under a guardian: clears what crashed runs left, reserves a name, ports and addresses, and runs `body`.
 * When that fails, everything made so far is removed.
 */
export async function launch<T extends Cluster>(
  { log = silent, name, keep = false }: StartOptions,
  wanted: Omit<Claim, "name">,
  body: (record: ClusterRecord, stop: Stop) => Promise<T>,
): Promise<T> {
  await reap(log);
  const record = await claim({ ...wanted, name });
  log(`starting cluster ${record.name}, mode ${record.mode}`);
  const guardian = await hireGuardian(record.name);
  const watched = guardian.id ? { ...record, guardian: guardian.id } : record;
  const stop = async (): Promise<void> => {
    await removeCluster(record.name);
    await guardian.dismiss();
  };
  try {
    await saveRecord(watched);
    const cluster = await body(watched, stop);
    await saveRecord({ ...watched, owner: keep ? null : record.owner, ready: true });
    if (keep) await guardian.dismiss();
    return cluster;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Fills the folder of a cluster's binaries, for PATH. */
export async function linkBinaries(dir: string, files: readonly string[]): Promise<void> {
  await mkdir(join(dir, "bin"), { recursive: true });
  await Promise.all(files.map((file) => symlink(file, join(dir, "bin", basename(file)))));
}

async function issueUser(name: string, plane: ControlPlane, who: User): Promise<Kubeconfig> {
  const { user, groups = [] } = who;
  const hash = createHash("sha256")
    .update(JSON.stringify([user, groups]))
    .digest("hex");
  const file = `user-${user.replaceAll(/[^a-zA-Z0-9-]/g, "_").slice(0, 60)}-${hash.slice(0, 8)}`;
  const pair = await plane.certificates.issue(file, who);
  const parts = { cluster: name, server: plane.server, ca: plane.certificates.ca, user, pair };
  return writeKubeconfig(join(clusterDir(name), `${file}.kubeconfig`), parts);
}

/** kubectl bound to a kubeconfig, with a cache of its own: ports come back with other clusters behind them. */
export function kubectlOf(dir: string, admin: string): Cluster["kubectl"] {
  const file = join(dir, "bin", "kubectl");
  const cache = ["--cache-dir", join(dir, "kubectl-cache")];
  return (args, { stdin, kubeconfig = admin, signal } = {}) =>
    run(file, ["--kubeconfig", kubeconfig, ...cache, ...args], { stdin, signal });
}

/** Where the control plane of a cluster is. */
export function placeOf(record: ClusterRecord, address?: string): ControlPlanePlace {
  const { name, ports } = record;
  return { name, dir: clusterDir(name), ports, ...(address !== undefined && { address }) };
}

/** The cluster that a record tells of, seen from the side of its control plane. */
export async function toControlPlaneCluster<M extends ControlPlaneCluster["mode"]>(
  record: ClusterRecord,
  mode: M,
  plane: ControlPlane,
  stop: Stop,
): Promise<ControlPlaneCluster & { readonly mode: M }> {
  const dir = clusterDir(record.name);
  const admin = plane.adminKubeconfig;
  return {
    name: record.name,
    mode,
    dir,
    server: plane.server,
    kubeconfigPath: admin,
    adminKubeconfig: await readFile(admin, "utf8"),
    binDir: join(dir, "bin"),
    kubectlPath: join(dir, "bin", "kubectl"),
    kubectl: kubectlOf(dir, admin),
    userKubeconfig: (who) => issueUser(record.name, plane, who),
    etcd: plane.etcd,
    apiServer: plane.apiServer,
    controllerManager: plane.controllerManager,
    scheduler: plane.scheduler,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
