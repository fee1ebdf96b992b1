import { spawn } from "node:child_process";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const ROOT = path.resolve(import.meta.dirname, "../..");

/** How a command ended. `output` is empty when it went straight to the terminal. */
export interface Ended {
  code: number;
  seconds: number;
  output: string;
  timedOut: boolean;
}

export interface CommandOptions {
  /** Keep the output instead of showing it. */
  quiet?: boolean;
  /** Once aborted, the command is asked to stop, and killed GRACE_MS later. */
  limit?: AbortSignal;
  env?: Record<string, string>;
}

/** Tests tear down clusters when they are interrupted: that takes its time. */
const GRACE_MS = 60_000;
const DRAIN_MS = 2_000;

const running = new Set<number>();
let interrupted = false;

/** Ctrl-C was pressed, or somebody told us to stop. */
export function wasInterrupted(): boolean {
  return interrupted;
}

function signalGroup(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name);
  } catch {
    // Gone already.
  }
}

/**
 * Each command leads a process group of its own, so that nothing it started outlives it: the first
 * signal is passed on for an orderly end, the second one kills.
 */
function passOnSignals(): void {
  const stop = (name: NodeJS.Signals): void => {
    const again = interrupted;
    interrupted = true;
    for (const pid of running) signalGroup(pid, again ? "SIGKILL" : name);
    if (!again && running.size > 0) {
      process.stderr.write("\nstopping; press Ctrl-C again to stop at once\n");
      setTimeout(() => stop("SIGKILL"), GRACE_MS).unref();
    }
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, stop);
}

passOnSignals();

/** Runs `argv` in the root of the project with Node and the tools of node_modules on PATH. */
export async function runCommand(argv: readonly string[], o: CommandOptions = {}): Promise<Ended> {
  const [program = "", ...args] = argv;
  const start = performance.now();
  const child = spawn(program, args, {
    cwd: ROOT,
    detached: true,
    // No standard input: a tool that asks something must not wait for an answer for ever.
    stdio: ["ignore", o.quiet === true ? "pipe" : "inherit", o.quiet === true ? "pipe" : "inherit"],
    env: {
      ...process.env,
      ...o.env,
      PATH: `${path.join(ROOT, "node_modules/.bin")}${path.delimiter}${process.env.PATH ?? ""}`,
    },
  });
  const closed = new Promise((resolve) => child.once("close", resolve));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  }
  const { pid } = child;
  if (pid !== undefined) running.add(pid);

  let kill: NodeJS.Timeout | undefined;
  const stop = (): void => {
    if (pid === undefined) return;
    signalGroup(pid, "SIGINT");
    kill = setTimeout(() => signalGroup(pid, "SIGKILL"), GRACE_MS);
  };
  o.limit?.addEventListener("abort", stop);
  const code = await new Promise<number>((resolve) => {
    child.once("error", (error) => {
      output += error.message;
      if (o.quiet !== true) process.stderr.write(`${error.message}\n`);
      resolve(127);
    });
    // "exit", not "close": a stray grandchild may hold the pipe open until it is killed below.
    child.once("exit", (status) => resolve(status ?? 1));
  });
  o.limit?.removeEventListener("abort", stop);
  clearTimeout(kill);
  if (pid !== undefined) {
    running.delete(pid);
    signalGroup(pid, "SIGKILL");
    // What it printed last is still on its way. One that left the group may hold the pipe for good.
    await Promise.race([closed, sleep(DRAIN_MS, undefined, { ref: false })]);
  }
  const timedOut = o.limit?.aborted ?? false;
  return { code, seconds: (performance.now() - start) / 1000, output, timedOut };
}
