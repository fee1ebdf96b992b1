import { spawn } from "node:child_process";
import path from "node:path";

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
  /** Asked to stop after this long, killed GRACE_MS later. */
  timeoutMs?: number;
  env?: Record<string, string>;
}

/** Tests tear down clusters when they are interrupted: that takes its time. */
const GRACE_MS = 60_000;

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
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  }
  const { pid } = child;
  if (pid !== undefined) running.add(pid);

  let timedOut = false;
  const timers = [
    setTimeout(
      () => {
        timedOut = true;
        if (pid !== undefined) signalGroup(pid, "SIGINT");
      },
      o.timeoutMs ?? 2 ** 30,
    ),
    setTimeout(
      () => pid !== undefined && signalGroup(pid, "SIGKILL"),
      (o.timeoutMs ?? 2 ** 30) + GRACE_MS,
    ),
  ];
  const code = await new Promise<number>((resolve) => {
    child.once("error", (error) => {
      output += error.message;
      if (o.quiet !== true) process.stderr.write(`${error.message}\n`);
      resolve(127);
    });
    // "exit", not "close": a stray grandchild may hold the pipe open for ever.
    child.once("exit", (status) => resolve(status ?? 1));
  });
  for (const timer of timers) clearTimeout(timer);
  if (pid !== undefined) {
    running.delete(pid);
    signalGroup(pid, "SIGKILL");
  }
  return { code, seconds: (performance.now() - start) / 1000, output, timedOut };
}
