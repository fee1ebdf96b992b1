import { spawn } from "node:child_process";
import { mkdir, open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { ClusterError, codeOf } from "./errors.ts";

/**
 * flock(2) on a file that we have open. The command locks the descriptor it inherits, which is the same open file as ours: when
 * it has ended, the lock is ours until we close the file or die, so there is no stale lock to detect and no time-out.
 */
async function lock(file: FileHandle, path: string): Promise<void> {
  const child = spawn("flock", ["--exclusive", "3"], {
    stdio: ["ignore", "ignore", "inherit", file.fd],
  });
  const code = await new Promise((resolve, reject) => {
    child.on("error", reject).on("exit", resolve);
  }).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new ClusterError("flock not found: install util-linux (test clusters need Linux)");
  });
  if (code !== 0) throw new ClusterError(`cannot lock ${path}: flock ended with ${String(code)}`);
}

async function holding<T>(
  file: FileHandle,
  path: string,
  body: () => Promise<T>,
  onWait?: () => void,
): Promise<T> {
  const waiting = onWait && setTimeout(onWait, 300);
  try {
    await lock(file, path).finally(() => clearTimeout(waiting));
    return await body();
  } finally {
    await file.close();
  }
}

/**
 * Runs `body` while holding an exclusive lock on the file `path` (made when missing) against every process of the machine.
 * @param onWait called once when somebody else holds the lock
 */
export async function withFileLock<T>(
  path: string,
  body: () => Promise<T>,
  onWait?: () => void,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  return holding(await open(path, "a"), path, body, onWait);
}

/** The same on a folder that must exist. Undefined, without running `body`, when it does not. */
export async function withFolderLock<T>(
  path: string,
  body: () => Promise<T>,
): Promise<T | undefined> {
  const folder = await open(path, "r").catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  return folder && holding(folder, path, body);
}
