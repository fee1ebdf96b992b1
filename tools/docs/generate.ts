/**
 * Writes the pages of docs/ that come from tables of the code.
 *
 *   node tools/docs/generate.ts            write them
 *   node tools/docs/generate.ts --check    only compare: exit code 1 when one is stale
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { format } from "prettier";
import { staleness } from "../crd/generate.ts";
import { configPage } from "./config-page.ts";
import { metricsPage } from "./metrics-page.ts";

const DOCS = path.resolve(import.meta.dirname, "../../docs");
const PAGES: Record<string, () => string> = {
  "config.md": configPage,
  "metrics.md": metricsPage,
};

async function main(check: boolean): Promise<number> {
  const faults: string[] = [];
  for (const [name, page] of Object.entries(PAGES)) {
    const file = path.join(DOCS, name);
    const want = await format(page(), { parser: "markdown", printWidth: 100 });
    const fault = staleness(file, want);
    if (fault === undefined) continue;
    if (check) {
      faults.push(fault);
    } else {
      mkdirSync(DOCS, { recursive: true });
      writeFileSync(file, want);
      console.log(`wrote docs/${name}`);
    }
  }
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) console.error("run: make generate");
  return faults.length > 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.includes("--check"));
