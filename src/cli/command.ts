/** What a command of the CLI is given and how it ends. */
export interface Io {
  stdin: AsyncIterable<string | Uint8Array>;
  /** Resolves when the text is taken; false when nobody reads any more (EPIPE). */
  out(text: string): Promise<boolean>;
  error(text: string): void;
  /** Wall clock, ms. */
  now(): number;
  env: Readonly<Record<string, string | undefined>>;
}

/** 0 done, 1 failed, 2 called wrongly. */
export type ExitCode = 0 | 1 | 2;

export interface Command {
  run(argv: readonly string[], io: Io): Promise<ExitCode>;
}

/** Everything that is wrong with a call, in one message. */
export function misuse(io: Io, command: string, problems: readonly string[]): ExitCode {
  const lines = problems.map((problem) => `  ${problem}`);
  io.error(
    `lockedcron${command === "" ? "" : ` ${command}`}: ${problems.length === 1 ? "one thing is" : `${problems.length} things are`} wrong\n${lines.join("\n")}\nSee lockedcron${command === "" ? "" : ` ${command}`} --help.\n`,
  );
  return 2;
}
