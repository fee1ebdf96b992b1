/** YAML and JSON manifests, with the lines that their fields stand on. */
import { readFile } from "node:fs/promises";
import { isMap, isNode, isScalar, LineCounter, parseAllDocuments, type Document } from "yaml";
import type { Io } from "./command.ts";

export type Path = readonly (string | number)[];

export interface Manifest {
  /** As it was given; "-" is standard input. */
  file: string;
  /** The YAML document, which keeps comments. */
  document: Document.Parsed;
  value: Record<string, unknown>;
  /** Line, from 1, of a field; of the nearest field around it when it is not there. */
  lineOf(path: Path): number;
}

export interface Unreadable {
  file: string;
  line: number | undefined;
  message: string;
}

/** Files and directories are not told apart: a directory cannot be read, and says so. */
export async function readManifests(
  io: Io,
  files: readonly string[],
): Promise<{ manifests: Manifest[]; unreadable: Unreadable[] }> {
  const manifests: Manifest[] = [];
  const unreadable: Unreadable[] = [];
  for (const file of files) {
    let text: string;
    try {
      text = file === "-" ? await readAll(io) : await readFile(file, "utf8");
    } catch (error) {
      unreadable.push({ file, line: undefined, message: (error as Error).message });
      continue;
    }
    const lines = new LineCounter();
    for (const document of parseAllDocuments(text, { lineCounter: lines })) {
      if ("empty" in document || document.contents === null) continue;
      const [error] = document.errors;
      if (error !== undefined) {
        const [message = ""] = error.message.split(" at line ");
        unreadable.push({ file, line: error.linePos?.[0].line, message });
        continue;
      }
      const value: unknown = document.toJS();
      const lineOf = (path: Path): number => lineIn(document, lines, path);
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        unreadable.push({ file, line: lineOf([]), message: "is not a Kubernetes object" });
        continue;
      }
      manifests.push({ file, document, value: value as Record<string, unknown>, lineOf });
    }
  }
  return { manifests, unreadable };
}

async function readAll(io: Io): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of io.stdin) {
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function lineIn(document: Document.Parsed, lines: LineCounter, path: Path): number {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? 0;
  for (const step of path) {
    // The line of the key: what is below it may begin on the next one.
    const key = isMap(node)
      ? node.items.find((pair) => isScalar(pair.key) && pair.key.value === step)?.key
      : undefined;
    node = isNode(node) && "get" in node ? node.get(step, true) : undefined;
    if (!isNode(node)) break;
    offset = (isNode(key) ? key : node).range?.[0] ?? offset;
  }
  return lines.linePos(offset).line;
}

/** `spec.jobTemplate.spec.template.spec.containers[0].name`, as the API server writes it. */
export function pathText(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[\w-]+$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${step}]`;
  }
  return text;
}
