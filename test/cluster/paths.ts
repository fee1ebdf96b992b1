import { mkdir, stat } from "node:fs/promises";
import { homedir, tmpdir, userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { ClusterError, UsageError } from "./errors.ts";

function absolute(variable: string, value: string): string {
  if (!isAbsolute(value)) {
    throw new UsageError(`${variable}=${value}: must be an absolute path`);
  }
  return value;
}

/** Where built binaries, Go tools and images live, outside the tree so that every checkout shares them. */
export function cacheDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env["LOCKEDCRON_CACHE"]) return absolute("LOCKEDCRON_CACHE", env["LOCKEDCRON_CACHE"]);
  const base = env["XDG_CACHE_HOME"];
  return join(base && isAbsolute(base) ? base : join(homedir(), ".cache"), "lockedcron");
}

/**
 * Where running clusters keep their state, one folder per cluster. Short on purpose: containerd and its shims put unix
 * sockets below it, and a socket path ends at 107 bytes.
 */
export function runDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env["LOCKEDCRON_RUN"]) return absolute("LOCKEDCRON_RUN", env["LOCKEDCRON_RUN"]);
  return join(tmpdir(), `lockedcron-${userInfo().uid}`);
}

export const clustersDir = (): string => join(runDir(), "clusters");
export const clusterDir = (name: string): string => join(clustersDir(), name);

/** Creates the run folder; refuses one that another user laid (it holds private keys). */
export async function ensureRunDir(): Promise<void> {
  await mkdir(runDir(), { recursive: true, mode: 0o700 });
  const { uid } = await stat(runDir());
  if (uid !== userInfo().uid) {
    throw new ClusterError(
      `${runDir()} belongs to uid ${uid}, not to you: set LOCKEDCRON_RUN to a folder of your own`,
    );
  }
  await mkdir(clustersDir(), { recursive: true });
}

/** PATH with the folders of system programs, which `su` and some shells leave out. */
export function searchPath(): string {
  return [process.env["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin"].filter(Boolean).join(":");
}
