/**
 * The witness of the soak: one file that every pod appends to, line by line, from its own container. All nodes of the test
 * cluster share the machine, so the order of the lines is the order in which things happened, and no pod can change it.
 */
import { readFileSync } from "node:fs";

export interface Line {
  run: string;
  pod: string;
  what: "start" | "alive" | "end";
  /** Its fencing token. */
  token?: number;
}

/** A pod that somebody has force-deleted, and how many lines there were then: what it writes later is not judged. */
export interface Forced {
  pod: string;
  at: number;
}

export function readLines(file: string): Line[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [what, run, pod, token] = line.split(" ");
      return { what, run, pod, token: Number(token) } as Line;
    });
}

/** Runs of which one wrote while another was not over. Pods of one run may overlap: the Job controller's replacements. */
export function overlaps(lines: readonly Line[], forced: readonly Forced[]): string[] {
  const judged = lines
    .map((line, at) => ({ ...line, at }))
    .filter(({ pod, at }) => {
      const by = forced.find((f) => f.pod === pod);
      return by === undefined || at < by.at;
    });
  const last = new Map<string, number>();
  for (const { run, at } of judged) last.set(run, at);
  const wrong: string[] = [];
  let open: { run: string; until: number } | undefined;
  for (const { run, at } of judged) {
    if (open === undefined || at > open.until) open = { run, until: last.get(run) ?? at };
    else if (run !== open.run) wrong.push(`line ${at + 1}: ${run} while ${open.run} was not over`);
  }
  return wrong;
}

/** Runs whose token is not higher than that of each run before them. */
export function tokensThatDoNotGrow(lines: readonly Line[]): string[] {
  const wrong: string[] = [];
  const seen = new Set<string>();
  let highest = 0;
  for (const { run, token = 0 } of lines) {
    if (seen.has(run)) continue;
    seen.add(run);
    if (!(token > highest)) wrong.push(`${run} has the token ${token} after ${highest}`);
    highest = Math.max(highest, token);
  }
  return wrong;
}
