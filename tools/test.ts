/**
 * `make test`: all that CI runs. Checks, the projects of vitest, the short demo; then a table and,
 * alone on the last line, `N passed, N failed`. A failed stage does not keep the later ones from
 * running. `node tools/test.ts unit redis` runs only the named stages.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CHECKS, reportCheck, reportTree, uncommitted } from "./ci/checks.ts";
import { ROOT, runCommand, wasInterrupted } from "./ci/command.ts";
import { countOne, skipStage, summarize, tallyVitest } from "./ci/tally.ts";
import type { Tally, VitestReport } from "./ci/tally.ts";

const MINUTE = 60_000;
const DEMO = "test/demo/main.ts";

const reports = mkdtempSync(path.join(tmpdir(), "lockedcron-test-"));
const isRoot = process.getuid?.() === 0;

interface Stage {
  name: string;
  run: () => Promise<Tally[]>;
}

async function checks(): Promise<Tally[]> {
  const tallies: Tally[] = [];
  for (const check of CHECKS) {
    if (wasInterrupted()) break;
    const start = performance.now();
    const good = await reportCheck(check);
    tallies.push(countOne(check.name, good, (performance.now() - start) / 1000));
  }
  return tallies;
}

function readReport(file: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as VitestReport;
  } catch {
    // vitest died before it wrote one, or there was no test to report on.
    return undefined;
  }
}

async function vitest(project: string, minutes: number): Promise<Tally[]> {
  const file = path.join(reports, `${project}.json`);
  const listed = await runCommand(["vitest", "list", "--filesOnly", "--project", project], {
    quiet: true,
  });
  if (listed.code === 0 && !listed.output.includes(".test.ts")) return [];
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const ended = await runCommand(["vitest", "run", "--project", project, ...reporters], {
    limit: AbortSignal.timeout(minutes * MINUTE),
  });
  return [tallyVitest(project, readReport(file), ended)];
}

async function nodes(): Promise<Tally[]> {
  return isRoot ? vitest("nodes", 30) : [skipStage("nodes", "needs root for real pods")];
}

async function demo(): Promise<Tally[]> {
  if (!existsSync(path.join(ROOT, DEMO))) return [];
  const { code, seconds } = await runCommand(["node", DEMO, "--plain", "--short"], {
    limit: AbortSignal.timeout(15 * MINUTE),
  });
  return [countOne("demo", code === 0, seconds, code === 0 ? undefined : `exit code ${code}`)];
}

const STAGES: readonly Stage[] = [
  { name: "checks", run: checks },
  { name: "unit", run: () => vitest("unit", 10) },
  { name: "redis", run: () => vitest("redis", 15) },
  { name: "cluster", run: () => vitest("cluster", 30) },
  { name: "nodes", run: nodes },
  { name: "demo", run: demo },
];

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !STAGES.some((stage) => stage.name === name));
  if (unknown.length > 0) {
    const known = STAGES.map((stage) => stage.name).join(", ");
    console.error(`no such stage: ${unknown.join(", ")}; there is ${known}`);
    return 2;
  }
  const wasClean = (await uncommitted()) === "";
  const tallies: Tally[] = [];
  for (const stage of STAGES) {
    if (wasInterrupted()) break;
    if (names.length > 0 && !names.includes(stage.name)) continue;
    console.log(`\n== ${stage.name}`);
    tallies.push(...(await stage.run()));
  }
  if (wasInterrupted()) {
    console.log("\ninterrupted");
    return 130;
  }
  if (wasClean) tallies.push(countOne("clean tree", reportTree(await uncommitted()), 0));
  const { text, good } = summarize(tallies);
  console.log(text);
  return good ? 0 : 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} finally {
  rmSync(reports, { recursive: true, force: true });
}
