/**
 * Writes what the chart has from elsewhere: its schema, its README, its copy of the CRD (and that of deploy/install). Needs nothing but Node; what
 * comes out of the chart by Helm (deploy/install) is written by render.ts.
 *
 *   node tools/chart/generate.ts            write
 *   node tools/chart/generate.ts --check    only compare: exit code 1 when one is stale
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { format } from "prettier";
import { parse } from "yaml";
import { staleness } from "../crd/generate.ts";
import { chartReadme } from "./readme.ts";
import { valuesSchema } from "./values-schema.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const CHART = path.join(ROOT, "charts/lockedcron");
const STATIC = path.join(ROOT, "deploy/install");
const read = (...parts: string[]): string => readFileSync(path.join(...parts), "utf8");

async function files(): Promise<Record<string, string>> {
  const about = parse(read(CHART, "Chart.yaml")) as { version: string };
  const readme = chartReadme(read(CHART, "values.yaml"), about);
  const markdown = { parser: "markdown", printWidth: 100 };
  const crd = read(ROOT, "crds/lockedcronjobs.yaml");
  return {
    [path.join(CHART, "README.md")]: await format(readme, markdown),
    [path.join(CHART, "values.schema.json")]: `${JSON.stringify(valuesSchema, null, 2)}\n`,
    // Neither a chart nor a kustomization may read files outside of its folder.
    [path.join(CHART, "files/lockedcronjobs.yaml")]: crd,
    [path.join(STATIC, "lockedcronjobs.yaml")]: crd,
  };
}

async function main(check: boolean): Promise<number> {
  const faults: string[] = [];
  for (const [file, want] of Object.entries(await files())) {
    const fault = staleness(file, want);
    if (fault === undefined) continue;
    if (check) {
      faults.push(fault);
      continue;
    }
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, want);
    console.log(`wrote ${path.relative(ROOT, file)}`);
  }
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) console.error("run: make generate");
  return faults.length > 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.includes("--check"));
