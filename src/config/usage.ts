import { flagOf, variableOf } from "./option.ts";
import type { Option } from "./option.ts";
import { FIELDS, OPTIONS } from "./options.ts";

/** A row of --help and of docs/config.md. */
export interface OptionRow {
  /** Absent where only the variable exists. */
  flag?: string;
  variable: string;
  placeholder: string;
  defaultText: string;
  help: string;
}

export function optionRows(): OptionRow[] {
  return FIELDS.map((field) => {
    const option: Option<unknown> = OPTIONS[field];
    return {
      ...(option.variableOnly !== true && { flag: flagOf(field) }),
      variable: variableOf(field),
      placeholder: option.placeholder,
      defaultText: option.defaultText ?? "none",
      help: option.help + (option.repeatable === true ? " A comma list; may be repeated." : ""),
    };
  });
}

const WIDTH = 96;
const INDENT = "        ";

function wrap(words: string): string {
  const lines = [INDENT];
  for (const word of words.split(" ")) {
    const line = lines.at(-1) ?? "";
    if (line.length + word.length >= WIDTH && line !== INDENT) lines.push(`${INDENT}${word}`);
    else lines[lines.length - 1] = line === INDENT ? `${line}${word}` : `${line} ${word}`;
  }
  return lines.join("\n");
}

/** The text of --help. */
export function usage(): string {
  const options = optionRows().map((row) => {
    const name = row.flag === undefined ? row.variable : `${row.flag} ${row.placeholder}`;
    return `  ${name}\n${wrap(`${row.help} Default: ${row.defaultText}.`)}`;
  });
  return [
    "Runs cron Jobs exactly once per tick: the LockedCronJob operator.",
    "",
    "Usage: node dist/main.js --redis URL,URL,URL [flags]",
    "",
    "A flag goes before its variable, the variable before the default. The variable of --log-level",
    "is LOCKEDCRON_LOG_LEVEL, and so on; an empty variable counts as not set.",
    "",
    ...options,
    `  --help\n${wrap("Prints this.")}`,
    `  --version\n${wrap("Prints the version.")}`,
    "",
  ].join("\n");
}
