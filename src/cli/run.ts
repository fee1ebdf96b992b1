import { misuse, type Command, type ExitCode, type Io } from "./command.ts";

/** Commands are loaded when they are called: `next` must not wait for the Kubernetes client. */
const COMMANDS: Readonly<Record<string, { summary: string; load: () => Promise<Command> }>> = {
  next: {
    summary: "print when a schedule fires",
    load: async () => (await import("./next.ts")).next,
  },
  lint: {
    summary: "say what is wrong with manifests",
    load: async () => (await import("./lint.ts")).lint,
  },
  convert: {
    summary: "turn CronJobs into LockedCronJobs, and back",
    load: async () => (await import("./convert.ts")).convert,
  },
  list: {
    summary: "list LockedCronJobs, soonest first",
    load: async () => (await import("./list.ts")).list,
  },
  status: {
    summary: "show one with its next times, lock, runs and decisions",
    load: async () => (await import("./status.ts")).status,
  },
  suspend: {
    summary: "start no new runs",
    load: async () => (await import("./suspend.ts")).suspend,
  },
  resume: {
    summary: "start runs again",
    load: async () => (await import("./suspend.ts")).resume,
  },
  trigger: {
    summary: "start one run now",
    load: async () => (await import("./ask.ts")).trigger,
  },
  backfill: {
    summary: "run the ticks of a past range again",
    load: async () => (await import("./ask.ts")).backfill,
  },
  check: {
    summary: "try what the operator would need",
    load: async () => (await import("./check.ts")).check,
  },
  locks: {
    summary: "show the locks of live runs",
    load: async () => (await import("./locks.ts")).locks,
  },
  "redis-password": {
    summary: "make or replace the passwords of the chart's Redis",
    load: async () => (await import("./redis-password.ts")).redisPassword,
  },
  "release-finalizers": {
    summary: "let go of what a removed operator has left behind",
    load: async () => (await import("./release-finalizers.ts")).releaseFinalizers,
  },
};

function usage(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const list = Object.entries(COMMANDS).map(
    ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`,
  );
  return `Usage: lockedcron COMMAND [options]\n\n${list.join("\n")}\n\nlockedcron COMMAND --help tells more.\n`;
}

/** Runs the command that the first word names. Never throws for what a user can write. */
export async function runCli(argv: readonly string[], io: Io): Promise<ExitCode> {
  const [name, ...rest] = argv;
  if (name === "--help" || name === "-h" || name === "help") {
    await io.out(usage());
    return 0;
  }
  if (name === undefined) {
    io.error(usage());
    return 2;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    return misuse(io, "", [
      `${JSON.stringify(name)}: no such command; there are ${Object.keys(COMMANDS).join(", ")}`,
    ]);
  }
  return (await command.load()).run(rest, io);
}
