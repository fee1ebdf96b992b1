/** The file of --redis-config: the list of nodes where an address cannot say all that a node needs. */
import { dirname } from "node:path";
import { parseDocument } from "yaml";
import type { ConfigProblem } from "./arguments.ts";
import { createFields, isObject, type Fields, type Refuse } from "./fields.ts";
import { countProblems, type RedisNode } from "./redis.ts";
import { readNode } from "./redis-node.ts";

export interface RedisFile {
  nodes: readonly RedisNode[];
  previousNodes?: readonly RedisNode[];
}

interface Source {
  readonly path: string;
  /** The flag or variable that names it. */
  readonly source: string;
  readonly readFile: (path: string) => string;
}

/**
 * Checks the whole file. Paths in it are relative to its folder, and must be readable.
 * @returns undefined when something is wrong; all of that is in `problems`, without secrets
 */
export function readRedisFile(file: Source, problems: ConfigProblem[]): RedisFile | undefined {
  const before = problems.length;
  const refuse: Refuse = (at, message, value) =>
    problems.push({
      field: at === "" ? file.source : `${file.source} ${at}`,
      ...(value !== undefined && {
        value: typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined"),
      }),
      message,
    });
  const content = parseFile(file, refuse);
  if (content === undefined) return undefined;
  const fields = createFields(refuse, dirname(file.path), file.readFile);
  fields.names({ at: "", fields: content }, ["nodes", "previousNodes"]);
  const nodes = readList(fields, "nodes", content.nodes);
  const old = content.previousNodes;
  const previous = old === undefined ? undefined : readList(fields, "previousNodes", old);
  if (problems.length > before) return undefined;
  return { nodes, ...(previous !== undefined && { previousNodes: previous }) };
}

function parseFile(
  { path, readFile }: Source,
  refuse: Refuse,
): Record<string, unknown> | undefined {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    refuse("", `can not be read (${(error as Error).message}); give the path of a file`, path);
    return undefined;
  }
  const document = parseDocument(text, { prettyErrors: false });
  const [wrong] = document.errors;
  if (wrong !== undefined) {
    // Its own message would repeat the line, which may hold a password.
    const line = text.slice(0, wrong.pos[0]).split("\n").length;
    refuse("", `is neither YAML nor JSON (${wrong.code} in line ${line}); correct it`, path);
    return undefined;
  }
  const content = contentOf(document);
  if (isObject(content)) return content;
  refuse("", "is no list of nodes; write it as docs/config.md shows", path);
  return undefined;
}

function contentOf(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS();
  } catch {
    // An alias that has no anchor, or too many of them.
    return undefined;
  }
}

function readList(fields: Fields, list: string, given: unknown): RedisNode[] {
  if (!Array.isArray(given) || given.length === 0) {
    fields.refuse(list, "is no list; write one entry for each Redis master");
    return [];
  }
  const nodes = given.map((entry: unknown, i) => readNode(fields, entry, `${list}[${i}]`, i));
  const good = nodes.filter((node) => node !== undefined);
  if (good.length < nodes.length) return [];
  for (const problem of countProblems(good)) fields.refuse(list, problem);
  const names = good.map(({ name }) => name);
  for (const [i, name] of names.entries()) {
    if (names.indexOf(name) === i) continue;
    fields.refuse(`${list}[${i}].name`, "is another node's, too; give each its own", name);
  }
  return good;
}
