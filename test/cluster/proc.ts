import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { ClusterError, codeOf } from "./errors.ts";

/** A process told apart from a later one with the same pid: start time in clock ticks since boot (/proc/PID/stat, 22). */
export interface ProcessId {
  readonly pid: number;
  readonly startTime: string;
}

interface Stat extends ProcessId {
  readonly state: string;
  readonly threads: number;
}

function readStat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The second field is the command in parentheses and may hold spaces and parentheses: count from the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", threads, startTime = ""] = [fields[0], fields[17], fields[19]];
  return { pid, state, threads: Number(threads), startTime };
}

/** Identity of a process that runs now; undefined when there is none. */
export function identify(pid: number): ProcessId | undefined {
  const found = readStat(pid);
  return found && { pid: found.pid, startTime: found.startTime };
}

/** The process that runs this code. */
export function self(): ProcessId {
  const found = identify(process.pid);
  if (!found) throw new ClusterError("no /proc: test clusters of this kind need Linux");
  return found;
}

/**
 * Whether that very process still runs. A zombie (waits for its parent to collect it) does not, once its last thread has
 * ended: until then it still holds its ports.
 */
export function isAlive(id: ProcessId): boolean {
  const found = readStat(id.pid);
  if (found?.startTime !== id.startTime) return false;
  return !"ZX".includes(found.state) || found.threads > 1;
}

/** Sends a signal to that very process, never to another one that got its pid. False when it is gone. */
export function signal(id: ProcessId, name: NodeJS.Signals): boolean {
  if (!isAlive(id)) return false;
  try {
    return process.kill(id.pid, name);
  } catch (error) {
    if (codeOf(error) === "ESRCH") return false;
    throw error;
  }
}

/**
 * Waits until `probe` gives something other than undefined or false, looking every few milliseconds.
 * @throws ClusterError naming `what` when the deadline passes
 */
export async function until<T>(
  what: string,
  timeoutMs: number,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let pause = 5; ; pause = Math.min(pause * 1.5, 100)) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) {
      throw new ClusterError(`${what}: not within ${Math.round(timeoutMs / 1000)} s`);
    }
    await delay(pause);
  }
}

/** Waits until none of them runs any more. */
export async function gone(ids: readonly ProcessId[], timeoutMs: number): Promise<void> {
  const names = ids.map(({ pid }) => pid).join(", ");
  await until(`end of process ${names}`, timeoutMs, () => !ids.some(isAlive));
}

/** Kills them and waits until they are gone. SIGKILL also ends a stopped process. */
export async function killAll(ids: readonly ProcessId[]): Promise<void> {
  const hit = ids.filter((id) => signal(id, "SIGKILL"));
  if (hit.length > 0) await gone(hit, 20_000);
}

/** Variable that marks every process of a cluster with its folder, so that none can be lost, however its starter died. */
export const CLUSTER_MARK = "LOCKEDCRON_TEST_CLUSTER";

/** Every process whose environment or command line says that it belongs to the cluster in `dir`. */
export function processesOf(dir: string): ProcessId[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .flatMap((entry) => (belongsTo(entry, dir) ? (identify(Number(entry)) ?? []) : []));
}

function belongsTo(pid: string, dir: string): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    if (environment.includes(`${CLUSTER_MARK}=${dir}`)) return true;
    // containerd gives its shims an environment of their own, but the path of its socket.
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const isShim = command[0]?.includes("containerd-shim") === true;
    if (isShim && command.some((arg) => arg.startsWith(`${dir}/`))) return true;
    return isContainerOf(pid, dir);
  } catch {
    return false; // gone meanwhile, or somebody else's
  }
}

/** Whether a process lives in a container whose root file system is kept below the folder. */
function isContainerOf(pid: string, dir: string): boolean {
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n");
  return mounts.some((line) => line.split(" ")[4] === "/" && line.includes(`${dir}/`));
}
