import { parseArgs } from "node:util";
import { UsageError } from "../cluster/errors.ts";

export type DemoMode = "nodes" | "simulated" | "control-plane";

export interface DemoOptions {
  readonly mode: DemoMode;
  /** A quarter of the length: what CI runs. */
  readonly short: boolean;
  /** One line per tick, nothing is ever redrawn. */
  readonly plain: boolean;
  /** Everything goes on after the summary. */
  readonly keep: boolean;
}

export type Command =
  | { readonly kind: "run"; readonly options: DemoOptions }
  /** As `run`, in the process that stays after the one at the terminal has ended; not for people. */
  | { readonly kind: "background"; readonly options: DemoOptions }
  | { readonly kind: "down" }
  | { readonly kind: "help"; readonly text: string };

const FLAGS = {
  short: "about a minute instead of three and a half",
  plain: "one line per tick, for logs; the default when the output is no terminal",
  keep: "leave everything running, and print how to use kubectl on it",
  down: "end what --keep left running",
  simulated: "pods are played by kwok; the default without root",
  "control-plane": "no nodes: the demo itself says that pods have run",
  help: "this text",
} as const;

const HELP = `usage: node test/demo/main.ts [flags]     or: make demo DEMO_FLAGS="flags"

Three replicas of the operator, five Redis and a Kubernetes cluster of its own (as root its pods really run);
then they are killed, frozen, cut off and wiped, and each tick is counted.

${Object.entries(FLAGS)
  .map(([flag, text]) => `  --${flag.padEnd(14)} ${text}`)
  .join("\n")}

Exit code: 0 each due tick has exactly one Job, or a recorded reason why it has none; 1 not so, or it could not start;
2 wrong flags; 130 interrupted.`;

const spec = (flag: string) => [flag, { type: "boolean" as const }] as const;
const OPTIONS = Object.fromEntries([...Object.keys(FLAGS), "background"].map(spec));

/** @throws UsageError with every mistake */
export function parseFlags(
  argv: readonly string[],
  where: { root: boolean; tty: boolean },
): Command {
  // Not strict: that would stop at the first mistake.
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: OPTIONS,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const mistakes = [
    ...positionals.map((word) => `${word}: unexpected`),
    ...tokens.flatMap((token) => {
      if (token.kind !== "option") return [];
      if (!Object.hasOwn(OPTIONS, token.name)) return [`${token.rawName}: no such flag`];
      return token.value === undefined ? [] : [`${token.rawName}=${token.value}: takes no value`];
    }),
  ];
  const on = (flag: keyof typeof FLAGS | "background"): boolean => values[flag] === true;
  if (on("simulated") && on("control-plane"))
    mistakes.push("--simulated or --control-plane, not both");
  const alone = tokens.filter((token) => token.kind === "option").length === 1;
  if (on("down") && !alone) mistakes.push("--down goes alone");
  if (mistakes.length > 0) throw new UsageError(mistakes.join("; "));
  if (on("help")) return { kind: "help", text: HELP };
  if (on("down")) return { kind: "down" };
  const given = on("control-plane") ? "control-plane" : on("simulated") ? "simulated" : undefined;
  return {
    kind: on("background") ? "background" : "run",
    options: {
      mode: given ?? (where.root ? "nodes" : "simulated"),
      short: on("short"),
      plain: on("plain") || !where.tty,
      keep: on("keep"),
    },
  };
}
