import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** What a script does to a key; also the name of its file. */
export type ScriptName = "acquire" | "extend" | "release" | "inspect";

export interface Script {
  readonly name: ScriptName;
  readonly source: string;
  readonly sha: string;
}

function read(name: string): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), "utf8");
}

function load(name: ScriptName): Script {
  const source = read(name);
  return { name, source, sha: createHash("sha1").update(source).digest("hex") };
}

export const scripts: Readonly<Record<ScriptName, Script>> = {
  acquire: load("acquire"),
  extend: load("extend"),
  release: load("release"),
  inspect: load("inspect"),
};

/** Beside the lock keys, each with one key and an answer of its own kind. */
export const counterScript = read("counter");
export const enlistScript = read("enlist");
