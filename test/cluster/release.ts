import { readFile, readdir, readlink, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "./errors.ts";
import { deleteNamespaces } from "./network.ts";
import { run } from "./run.ts";

/** What a cluster makes on the host outside its own folder and processes. */
export interface HostResources {
  /** Network namespaces; their links and routes go with them. */
  readonly netns?: readonly string[];
  /** A cluster in Docker, with the program that deletes it. */
  readonly kind?: { readonly name: string; readonly program: string };
}

/** Gives it all back. What is not there is no error, so that it can be repeated after a crash. */
export async function releaseHost(dir: string, host: HostResources): Promise<void> {
  if (host.kind) await run(host.kind.program, ["delete", "cluster", "--name", host.kind.name]);
  for (const node of await namesIn(join(dir, "nodes"))) {
    const tasks = join(dir, "nodes", node, "run/io.containerd.runtime.v2.task/k8s.io");
    for (const id of await namesIn(tasks)) await releaseContainer(id, join(tasks, id));
  }
  await unmountBelow(dir);
  await deleteNamespaces(host.netns ?? []);
  await removeLogLinks(dir);
}

/**
 * What a container that was killed leaves in places that all containers of the host share: the socket of its shim, the
 * plug-ins' cached result of its network, its cgroups.
 */
async function releaseContainer(id: string, task: string): Promise<void> {
  const address = await readFile(join(task, "address"), "utf8").catch(() => "");
  const socket = address.replace(/^unix:\/\//, "");
  if (socket.startsWith("/run/containerd/s/")) await rm(socket, { force: true });
  await removeMatching("/var/lib/cni/results", (name) => name.includes(id));
  for (const folder of await cgroupFolders(`k8s.io/${id}`)) await removeTree(folder);
}

/** Mount points below a folder, deepest first. */
async function mountsBelow(dir: string): Promise<string[]> {
  const lines = (await readFile("/proc/self/mountinfo", "utf8")).split("\n");
  return lines
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${dir}/`))
    .map((point) =>
      point.replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))),
    )
    .toReversed();
}

async function unmountBelow(dir: string): Promise<void> {
  const points = await mountsBelow(dir);
  // Lazily: what still holds a file open is being killed, and the folder must go.
  if (points.length > 0) await run("umount", ["--lazy", ...points]);
}

async function namesIn(dir: string): Promise<string[]> {
  return readdir(dir).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
}

async function removeMatching(dir: string, matches: (name: string) => boolean): Promise<void> {
  const names = (await namesIn(dir)).filter(matches);
  await Promise.all(names.map((name) => rm(join(dir, name), { force: true })));
}

/** The kubelet links every log into this folder, wherever its own state is. */
async function removeLogLinks(dir: string): Promise<void> {
  const folder = "/var/log/containers";
  for (const name of await namesIn(folder)) {
    const target = await readlink(join(folder, name)).catch(() => "");
    if (target.startsWith(`${dir}/`)) await rm(join(folder, name), { force: true });
  }
}

const CGROUPS = "/sys/fs/cgroup";

/** Folders of a cgroup: one on cgroup v2, one per controller on v1. */
async function cgroupFolders(name: string): Promise<string[]> {
  const entries = await namesIn(CGROUPS);
  const v2 = entries.includes("cgroup.controllers");
  return v2 ? [join(CGROUPS, name)] : entries.map((controller) => join(CGROUPS, controller, name));
}

/** rmdir from the leaves up: the files in a cgroup cannot be deleted. */
async function removeTree(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(folder, entry.name));
  await rmdir(folder).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "ENOTDIR") throw error;
  });
}
