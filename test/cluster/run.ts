import { spawn } from "node:child_process";
import { finished } from "node:stream/promises";
import { messageOf } from "./errors.ts";
import { searchPath } from "./paths.ts";

export interface RunOptions {
  readonly cwd?: string;
  /** Variables on top of our own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Text for the command's standard input. */
  readonly stdin?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A command that ended with another exit code than 0, or by a signal. */
export class RunError extends Error {
  override readonly name = "RunError";
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;

  constructor(command: string, code: number | null, stdout: string, stderr: string) {
    super(`${command}: ${stderr.trim() || stdout.trim() || `exit code ${code}`}`);
    this.code = code;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

/** What a failed command itself said, without the command line. */
export function reasonOf(error: unknown): string {
  return error instanceof RunError && error.stderr ? error.stderr.trim() : messageOf(error);
}

/**
 * Runs a command to its end and returns its standard output.
 * @throws RunError on failure; the system error (`ENOENT`) when it could not be started
 */
export async function run(
  file: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const child = spawn(file, args, {
    ...(options.cwd && { cwd: options.cwd }),
    env: { ...process.env, PATH: searchPath(), ...options.env },
    ...(options.signal && { signal: options.signal }),
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = new Promise<number | null>((resolve, reject) =>
    child.on("error", reject).on("close", resolve),
  );
  if (child.stdin) {
    child.stdin.end(options.stdin);
    // A command that exits without reading all of its input (EPIPE) is judged by its exit code.
    await Promise.all([code, finished(child.stdin).catch(() => {})]);
  }
  if ((await code) !== 0) {
    throw new RunError(`${file} ${args.join(" ")}`, await code, stdout, stderr);
  }
  return stdout;
}
