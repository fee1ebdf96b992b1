/** `make demo`. See --help. */
import { ClusterError, UsageError } from "../cluster/errors.ts";
import { runInBackground, stayInBackground } from "./background.ts";
import { takeDown } from "./kept.ts";
import { parseFlags, type Command } from "./flags.ts";
import { runDemo } from "./run.ts";
import { Interrupted, onInterrupt } from "./interrupt.ts";
import type { Terminal } from "./screen.ts";

// One that is called dumb knows no escape sequences.
const isTTY = process.stdout.isTTY && process.env["TERM"] !== "dumb";

const terminal: Terminal = {
  write: (text) => void process.stdout.write(text),
  isTTY,
  size: () => ({ columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 }),
};

async function carryOut(command: Command, argv: readonly string[]): Promise<number> {
  switch (command.kind) {
    case "help":
      console.log(command.text);
      return 0;
    case "down":
      return takeDown();
    case "background":
      return stayInBackground(command.options);
    case "run": {
      if (command.options.keep) return runInBackground(argv, terminal);
      const { signal } = onInterrupt();
      return (await runDemo({ options: command.options, terminal, signal })).code;
    }
  }
}

async function main(argv: readonly string[]): Promise<number> {
  try {
    const where = { root: process.getuid?.() === 0, tty: isTTY };
    return await carryOut(parseFlags(argv, where), argv);
  } catch (error) {
    if (error instanceof Interrupted) {
      console.error(error.message);
      return error.code;
    }
    if (error instanceof UsageError) {
      console.error(`${error.message}\nnode test/demo/main.ts --help lists the flags`);
      return 2;
    }
    console.error(error instanceof ClusterError ? error.message : error);
    return 1;
  }
}

process.exit(await main(process.argv.slice(2)));
