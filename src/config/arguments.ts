import { parseArgs } from "node:util";
import { createRedactor } from "../telemetry/index.ts";
import { closest } from "./closest.ts";
import { flagOf, variableOf } from "./option.ts";
import type { Option } from "./option.ts";
import { FIELDS, OPTIONS } from "./options.ts";
import type { Field } from "./options.ts";

/** One wrong setting. `value` is absent where it is a secret. */
export interface ConfigProblem {
  /** The flag or variable as the user writes it. */
  field: string;
  value?: string;
  /** What is wrong and what to write instead. */
  message: string;
}

/** What the user gave for a setting, and where. */
export interface Given {
  source: string;
  text: string;
}

export interface Arguments {
  given: Partial<Record<Field, Given>>;
  help: boolean;
  version: boolean;
  problems: ConfigProblem[];
}

const WITH_FLAG = FIELDS.filter((field) => {
  const option: Option<unknown> = OPTIONS[field];
  return option.variableOnly !== true;
});
const FIELD_OF_FLAG = new Map(WITH_FLAG.map((field) => [flagOf(field).slice(2), field]));
const FIELD_OF_VARIABLE = new Map(FIELDS.map((field) => [variableOf(field), field]));
const redact = createRedactor();
const SWITCHES = ["help", "version"];

function unknownFlag(rawName: string): ConfigProblem {
  const name = rawName.slice(2);
  if (name === "redis-password") {
    return {
      field: "--redis-password",
      message:
        "there is no such flag, since arguments are visible to every process; " +
        "use --redis-password-file or the variable LOCKEDCRON_REDIS_PASSWORD",
    };
  }
  const near = closest(name, [...FIELD_OF_FLAG.keys(), ...SWITCHES]);
  const hint = near === undefined ? "see --help" : `did you mean --${near}?`;
  return { field: rawName, message: `there is no such flag; ${hint}` };
}

/** A flag whose value is missing must not swallow the flag behind it: such flags are taken out. */
function withoutBareFlags(argv: readonly string[], problems: ConfigProblem[]): string[] {
  const end = argv.indexOf("--");
  const last = end === -1 ? argv.length : end;
  return argv.filter((argument, i) => {
    const next = i + 1 < last ? argv[i + 1] : undefined;
    if (i >= last || !FIELD_OF_FLAG.has(argument.slice(2)) || !argument.startsWith("--"))
      return true;
    if (next !== undefined && !next.startsWith("--")) return true;
    problems.push({ field: argument, message: `needs a value; write ${argument}=VALUE` });
    return false;
  });
}

/** Reads the command line; everything wrong with it is a problem in the result. */
export function readArguments(argv: readonly string[]): Arguments {
  const result: Arguments = { given: {}, help: false, version: false, problems: [] };
  const { given, problems } = result;
  const { tokens } = parseArgs({
    args: withoutBareFlags(argv, problems),
    options: Object.fromEntries([
      ...[...FIELD_OF_FLAG.keys()].map((name) => [name, { type: "string" as const }]),
      ...SWITCHES.map((name) => [name, { type: "boolean" as const }]),
    ]),
    strict: false,
    tokens: true,
  });

  // Behind an unknown flag stands its value, which is no second mistake, and may be a secret.
  let valueOfUnknown = -1;
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue;
    if (token.kind === "positional") {
      if (token.index === valueOfUnknown) continue;
      problems.push({
        field: JSON.stringify(redact.text(token.value)),
        message: "is not expected here; every setting is a flag, see --help",
      });
      continue;
    }
    const field = token.rawName.startsWith("--") ? FIELD_OF_FLAG.get(token.name) : undefined;
    if (field !== undefined) {
      addGiven(given, problems, field, token.value ?? "");
    } else if (token.rawName === "--help" || token.rawName === "-h") {
      result.help = true;
    } else if (token.rawName === "--version") {
      result.version = true;
    } else {
      problems.push(unknownFlag(token.rawName));
      if (token.inlineValue !== true) valueOfUnknown = token.index + 1;
    }
  }
  return result;
}

function addGiven(
  given: Arguments["given"],
  problems: ConfigProblem[],
  field: Field,
  text: string,
): void {
  const option: Option<unknown> = OPTIONS[field];
  const before = given[field];
  if (before === undefined) {
    given[field] = { source: flagOf(field), text };
  } else if (option.repeatable === true) {
    before.text += `,${text}`;
  } else {
    problems.push({ field: flagOf(field), message: "is given more than once; keep one of them" });
  }
}

/**
 * Variables that Kubernetes sets in every pod beside a Service called lockedcron…: they are in our
 * name space by accident and mean nothing.
 */
const SERVICE_LINK =
  /_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Reads the LOCKEDCRON_* variables. One that is nearly a setting is a problem, others a warning. */
export function readVariables(env: Readonly<Record<string, string | undefined>>): {
  given: Partial<Record<Field, Given>>;
  problems: ConfigProblem[];
  warnings: string[];
} {
  const given: Partial<Record<Field, Given>> = {};
  const problems: ConfigProblem[] = [];
  const warnings: string[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith("LOCKEDCRON_") || text === undefined) continue;
    const field = FIELD_OF_VARIABLE.get(name);
    if (field !== undefined) {
      if (text !== "") given[field] = { source: name, text };
      continue;
    }
    if (SERVICE_LINK.test(name)) continue;
    const near = closest(name, FIELD_OF_VARIABLE.keys());
    if (near === undefined) warnings.push(`the variable ${name} is no setting and does nothing`);
    else
      problems.push({ field: name, message: `there is no such variable; did you mean ${near}?` });
  }
  return { given, problems, warnings };
}
