import { existsSync, globSync } from "node:fs";
import path from "node:path";
import { ROOT, runCommand } from "./command.ts";
import type { Ended } from "./command.ts";

/** Something that `make verify` and CI enforce beside the tests. */
export interface Check {
  name: string;
  /** Commands, run in turn until one fails. */
  commands: () => string[][];
}

/** Hand-written TypeScript; folders that do not exist yet are left out. */
export function sourceFolders(): string[] {
  return ["src", "test", "tools", "bench"].filter((folder) => existsSync(path.join(ROOT, folder)));
}

/** The CRD goes into the chart: ORDER: it is made first, or the chart has the one of before. */
const FIRST = "tools/crd/generate.ts";

/** Every generator of the project: `node FILE` writes, `node FILE --check` compares. */
export function generators(): string[] {
  const rest = globSync("tools/*/generate.ts", { cwd: ROOT }).filter((file) => file !== FIRST);
  return [FIRST, ...rest.toSorted()];
}

export const CHECKS: readonly Check[] = [
  {
    name: "generated",
    commands: () => generators().map((file) => ["node", file, "--check"]),
  },
  { name: "format", commands: () => [["prettier", "--check", "--log-level", "warn", "."]] },
  {
    name: "lint",
    commands: () => [["oxlint", "--type-aware", "--deny-warnings", ...sourceFolders()]],
  },
  { name: "types", commands: () => [["tsc", "--noEmit"]] },
];

/** Runs the commands of a check; the first that fails is its outcome. */
export async function runCheck(check: Check): Promise<Ended> {
  const total: Ended = { code: 0, seconds: 0, output: "", timedOut: false };
  for (const command of check.commands()) {
    const ended = await runCommand(command, { quiet: true, limit: AbortSignal.timeout(300_000) });
    total.seconds += ended.seconds;
    if (ended.code === 0) continue;
    return { ...ended, seconds: total.seconds };
  }
  return total;
}

/** Runs a check with one line for it, and its output when it fails. */
export async function reportCheck(check: Check): Promise<boolean> {
  const ended = await runCheck(check);
  const good = ended.code === 0;
  console.log(`${good ? "ok  " : "FAIL"} ${check.name.padEnd(12)} ${ended.seconds.toFixed(1)} s`);
  if (!good) console.log(ended.output.trimEnd());
  return good;
}

/** What git would list as changed or new; undefined outside of a clone. */
export async function uncommitted(): Promise<string | undefined> {
  const { code, output } = await runCommand(["git", "status", "--porcelain"], { quiet: true });
  return code === 0 ? output : undefined;
}

/** Says so when a check or a test left something in a work tree that was clean before. */
export function reportTree(left: string | undefined): boolean {
  if (left === "") return true;
  console.log(`FAIL clean tree: a check or a test changed or left files\n${left ?? "no clone"}`);
  return false;
}
