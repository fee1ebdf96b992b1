import { parseArgs } from "node:util";

export interface FlagSpec {
  /** A value follows (string) or not (boolean). */
  type: "string" | "boolean";
  /** One letter. */
  short?: string;
  /** May be given more than once: its values are in `lists`. */
  multiple?: boolean;
}

export interface Flags {
  values: Record<string, string | boolean | undefined>;
  lists: Record<string, string[]>;
  positionals: string[];
  problems: string[];
}

/** Reads flags and collects everything that is wrong, where parseArgs' strict mode stops at the first mistake. */
export function readFlags(
  argv: readonly string[],
  specs: Readonly<Record<string, FlagSpec>>,
): Flags {
  const { tokens } = parseArgs({
    args: [...argv],
    options: { help: { type: "boolean", short: "h" }, ...specs },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags: Flags = { values: {}, lists: {}, positionals: [], problems: [] };
  for (const token of tokens) {
    if (token.kind === "positional") flags.positionals.push(token.value);
    if (token.kind !== "option") continue;
    const spec: FlagSpec | undefined =
      token.name === "help" ? { type: "boolean" } : specs[token.name];
    if (spec === undefined) {
      const known = Object.keys(specs).map((name) => `--${name}`);
      flags.problems.push(`${token.rawName}: no such flag; there are ${known.join(", ")}`);
    } else if (flags.values[token.name] !== undefined && spec.multiple !== true) {
      flags.problems.push(`${token.rawName}: is given more than once; keep one of them`);
    } else if (spec.type === "string" && token.value === undefined) {
      flags.problems.push(`${token.rawName}: needs a value`);
    } else if (spec.type === "boolean" && token.value !== undefined) {
      flags.problems.push(`${token.rawName}: takes no value, but has ${quote(token.value)}`);
    } else {
      flags.values[token.name] = token.value ?? true;
      if (token.value !== undefined) (flags.lists[token.name] ??= []).push(token.value);
    }
  }
  return flags;
}

/** A value in a message: quoted, and cut where it is long. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…"` : text;
}
