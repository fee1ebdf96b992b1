import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError, codeOf, messageOf } from "./errors.ts";
import { searchPath } from "./paths.ts";
import { CLUSTER_MARK, gone, identify, isAlive, killAll, signal, until } from "./proc.ts";
import type { ProcessId } from "./proc.ts";
import type { Component, Flags } from "./types.ts";

/** How to run one server of a cluster. Kept as JSON in the cluster's folder, so that any process can take it up. */
export interface ComponentSpec {
  readonly name: string;
  readonly file: string;
  readonly flags: Flags;
  /** Words before the flags. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Network namespace to run in. */
  readonly netns?: string;
}

interface Saved {
  readonly spec: ComponentSpec;
  readonly process?: ProcessId;
}

/** Flags as the command line takes them; null leaves a flag out, a list repeats it. */
export function commandLine(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().map((item) => `--${name}=${String(item)}`),
  );
}

const stateFile = (dir: string, name: string): string => join(dir, "components", `${name}.json`);
const logFile = (dir: string, name: string): string => join(dir, "logs", `${name}.log`);

/** Replaces a file in one step, so that a crash leaves the old or the new one, never half of it. */
export async function writeJson(file: string, value: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const half = `${file}.${process.pid}.part`;
  await writeFile(half, `${JSON.stringify(value, null, 2)}\n`);
  await rename(half, file);
}

async function load(dir: string, name: string): Promise<Saved> {
  return JSON.parse(await readFile(stateFile(dir, name), "utf8")) as Saved;
}

function loadSync(dir: string, name: string): Saved | undefined {
  try {
    return JSON.parse(readFileSync(stateFile(dir, name), "utf8")) as Saved;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function lastLines(file: string, count: number): Promise<string> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-count).join("\n");
}

async function launch(dir: string, spec: ComponentSpec): Promise<ProcessId> {
  await mkdir(join(dir, "logs"), { recursive: true });
  const log = await open(logFile(dir, spec.name), "a");
  const command = [spec.file, ...(spec.args ?? []), ...commandLine(spec.flags)];
  // nsenter, not `ip netns exec`: the latter remounts /sys and hides the cgroup mounts from the kubelet.
  if (spec.netns) command.unshift("nsenter", `--net=/run/netns/${spec.netns}`, "--");
  try {
    const child = spawn(command[0] ?? "", command.slice(1), {
      cwd: dir,
      env: { ...process.env, PATH: searchPath(), ...spec.env, [CLUSTER_MARK]: dir },
      stdio: ["ignore", log.fd, log.fd],
      // Its own session: Ctrl-C in the terminal goes to the owner, who ends the parts in their order.
      detached: true,
    });
    await once(child, "spawn");
    child.unref();
    const id = identify(child.pid ?? 0);
    if (!id) throw new ClusterError(`${spec.name} ended at once`);
    return id;
  } finally {
    await log.close();
  }
}

/**
 * A server of the cluster in `dir`, controlled through the files there: whoever holds the cluster's folder, the process that
 * started it or another one, sees the same state.
 * @param ready resolves to true once the server answers; asked again until then
 */
export function openComponent(
  dir: string,
  name: string,
  ready: () => Promise<boolean>,
  timeoutMs = 60_000,
): Component {
  const current = (): ProcessId | undefined => {
    const id = loadSync(dir, name)?.process;
    return id && isAlive(id) ? id : undefined;
  };
  const running = (): ProcessId => {
    const id = current();
    if (!id) throw new ClusterError(`${name} does not run`);
    return id;
  };
  const save = async (spec: ComponentSpec, id: ProcessId): Promise<void> =>
    writeJson(stateFile(dir, name), { spec, process: id } satisfies Saved);

  const start = async (flags: Flags = {}): Promise<void> => {
    if (current()) throw new ClusterError(`${name} runs already`);
    const before = (await load(dir, name)).spec;
    const spec = { ...before, flags: { ...before.flags, ...flags } };
    const id = await launch(dir, spec);
    await save(spec, id);
    try {
      await until(`${name} ready`, timeoutMs, async () => {
        if (isAlive(id)) return ready();
        throw new ClusterError(`${name} ended while starting`);
      });
    } catch (error) {
      // A start that fails takes its folder away: say here what the log would have told.
      const log = await lastLines(logFile(dir, name), 15);
      throw new ClusterError(`${messageOf(error)}; the end of its log:\n${log}`);
    }
  };
  const end = async (how: NodeJS.Signals): Promise<void> => {
    const id = current();
    if (!id) return;
    signal(id, how);
    if (how !== "SIGKILL") signal(id, "SIGCONT"); // a paused process cannot hear SIGTERM
    await gone([id], 90_000);
  };

  return {
    name,
    logFile: logFile(dir, name),
    get pid() {
      return current()?.pid;
    },
    get flags() {
      return loadSync(dir, name)?.spec.flags ?? {};
    },
    start,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    restart: async ({ flags, how = "SIGTERM" } = {}) => {
      await end(how);
      await start(flags);
    },
    pause: () => void signal(running(), "SIGSTOP"),
    resume: () => void signal(running(), "SIGCONT"),
    ready: async () => void (await until(`${name} ready`, timeoutMs, ready)),
  };
}

/** Lays down how to run a component; `start` then runs it. */
export async function defineComponent(dir: string, spec: ComponentSpec): Promise<void> {
  await writeJson(stateFile(dir, spec.name), { spec } satisfies Saved);
}

/** Kills what a component's file names; for tearing down. */
export async function killComponents(dir: string, names: readonly string[]): Promise<void> {
  const ids = names.flatMap((name) => loadSync(dir, name)?.process ?? []);
  await killAll(ids);
}
