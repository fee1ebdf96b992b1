/**
 * Writes crds/lockedcronjobs.yaml, and src/cli/crd-schema.json for `lockedcron lint`.
 *
 *   node tools/crd/generate.ts             write it
 *   node tools/crd/generate.ts --check     only compare: exit code 1 when it is stale
 *   … --crd FILE                           another file than crds/lockedcronjobs.yaml
 *
 * Where the Go module k8s.io/kubernetes is in the module cache (the test cluster is built from it), its extract in
 * tools/crd/openapi-batch-v1.json is written, or compared, as well.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { render, renderLintSchema } from "./crd.ts";
import { EXTRACT, extractFromModule, readExtract } from "./source.ts";

const CRD = path.resolve(import.meta.dirname, "../../crds/lockedcronjobs.yaml");
const LINT_SCHEMA = path.resolve(import.meta.dirname, "../../src/cli/crd-schema.json");

/** Why the file is not what it should be, with the first line that differs; undefined if it is. */
export function staleness(file: string, want: string): string | undefined {
  const name = path.relative(process.cwd(), file);
  const got = readIfThere(file);
  if (got === want) return undefined;
  if (got === undefined) return `${name} does not exist`;
  const gotLines = got.split("\n");
  const wantLines = want.split("\n");
  let line = 0;
  while (gotLines[line] === wantLines[line]) line++;
  const [is, should] = [gotLines[line], wantLines[line]].map(excerpt);
  return `${name} is stale: line ${line + 1} is ${is}, should be ${should}`;
}

function excerpt(line: string | undefined): string {
  if (line === undefined) return "missing";
  const text = line.trim();
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  console.log(`wrote ${path.relative(process.cwd(), file)}`);
}

function main(): number {
  const { values } = parseArgs({
    options: { check: { type: "boolean", default: false }, crd: { type: "string", default: CRD } },
  });
  const fromModule = extractFromModule();
  if ("unavailable" in fromModule)
    console.log(
      `${path.relative(process.cwd(), EXTRACT)} taken as it is (${fromModule.unavailable})`,
    );

  if (!values.check) {
    if ("text" in fromModule) write(EXTRACT, fromModule.text);
    write(values.crd, render(readExtract()));
    write(LINT_SCHEMA, renderLintSchema(readExtract()));
    return 0;
  }
  const faults = [
    "text" in fromModule ? staleness(EXTRACT, fromModule.text) : undefined,
    staleness(values.crd, render(readExtract())),
    staleness(LINT_SCHEMA, renderLintSchema(readExtract())),
  ].filter((fault) => fault !== undefined);
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) console.error("run: make generate");
  return faults.length > 0 ? 1 : 0;
}

if (import.meta.main) {
  try {
    process.exitCode = main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
