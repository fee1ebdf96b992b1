/** Files that settings name, looked at before anything starts. */
import type { ConfigProblem, Given } from "./arguments.ts";
import { flagOf } from "./option.ts";
import type { Field, Values } from "./options.ts";

/** Throws when there is no such file. */
export type ReadFile = (path: string) => string;

/** What the user gave, where, and what came of it. */
export interface Checked {
  readonly values: Values;
  readonly given: Partial<Record<Field, Given>>;
  readonly readFile: ReadFile;
  readonly problems: ConfigProblem[];
}

export function passwordOf(content: string): string {
  return content.replace(/\r?\n$/, "");
}

/** All that is wrong with the files goes to `problems`. */
export function checkFiles(checked: Checked): void {
  checkPasswordFile(checked);
  for (const field of READABLE) checkReadable(field, checked);
  checkKeyPair(checked);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function checkPasswordFile({ values, given, readFile, problems }: Checked): void {
  const { redisPassword, redisPasswordFile: path } = values;
  if (path === undefined) return;
  const field = given.redisPasswordFile?.source ?? "--redis-password-file";
  if (redisPassword !== undefined) {
    const message = "does not go together with LOCKEDCRON_REDIS_PASSWORD; keep one of them";
    problems.push({ field, value: path, message });
    return;
  }
  try {
    if (passwordOf(readFile(path)) !== "") return;
    problems.push({ field, value: path, message: "is empty; write the password into the file" });
  } catch (error) {
    const message = `can not be read (${reasonOf(error)}); give the path of a readable file`;
    problems.push({ field, value: path, message });
  }
}

/** Files that are read later, with what each is to be. */
const READABLE = ["kubeconfig", "redisCaFile", "redisCertFile", "redisKeyFile"] as const;

function checkReadable(
  name: (typeof READABLE)[number],
  { values, given, readFile, problems }: Checked,
): void {
  const path = values[name];
  if (path === undefined) return;
  try {
    readFile(path);
  } catch (error) {
    const what = name === "kubeconfig" ? "kubeconfig" : "PEM file";
    problems.push({
      field: given[name]?.source ?? flagOf(name),
      value: path,
      message: `can not be read (${reasonOf(error)}); give the path of a ${what}`,
    });
  }
}

function checkKeyPair({ values: { redisCertFile, redisKeyFile }, given, problems }: Checked): void {
  if ((redisCertFile === undefined) === (redisKeyFile === undefined)) return;
  const [there, missing] =
    redisKeyFile === undefined
      ? (["redisCertFile", "redisKeyFile"] as const)
      : (["redisKeyFile", "redisCertFile"] as const);
  const message = `needs ${flagOf(missing)} beside it`;
  problems.push({ field: given[there]?.source ?? flagOf(there), message });
}
