import { constants } from "node:os";

/** Somebody pressed Ctrl-C, or told us to stop. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  /** Exit code, as shells have it: 128 and the signal's number. */
  readonly code: number;

  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}; everything is taken down`);
    this.code = codeOf(signal);
  }
}

export const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

export const INTERRUPTS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Interrupts {
  readonly signal: AbortSignal;
  stop(why: Interrupted): void;
}

/** Aborts at the first interrupt. The second one ends the process at once; its guardians clean up. */
export function onInterrupt(): Interrupts {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = (why: Interrupted): void => controller.abort(why);
  for (const name of INTERRUPTS) {
    process.on(name, () => {
      if (signal.aborted) process.exit(codeOf(name));
      process.stderr.write("\nstopping: taking everything down; once more to stop at once\n");
      stop(new Interrupted(name));
    });
  }
  // Whoever read what we print has gone (`| head`).
  process.stdout.on("error", () => stop(new Interrupted("SIGPIPE")));
  return { signal, stop };
}
