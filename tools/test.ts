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
  /** Runs at the same time; it shows what it prints when both have ended. */
  meanwhile?: Stage;
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
  const { code, seconds, output } = await runCommand(["node", DEMO, "--plain", "--short"], {
    quiet: true,
    limit: AbortSignal.timeout(15 * MINUTE),
  });
  console.log(`\n== demo\n${output}`);
  return [countOne("demo", code === 0, seconds, code === 0 ? undefined : `exit code ${code}`)];
}

const STAGES: readonly Stage[] = [
  { name: "checks", run: checks },
  // The demo waits, most of its time, for the next minute.
  { name: "unit", run: () => vitest("unit", 10), meanwhile: { name: "demo", run: demo } },
  { name: "redis", run: () => vitest("redis", 15) },
  { name: "cluster", run: () => vitest("cluster", 30) },
  { name: "nodes", run: nodes },
];

/** In the order in which they start; those of one list run together. */
function chosen(names: readonly string[]): Stage[][] {
  const isMeant = ({ name }: Stage): boolean => names.length === 0 || names.includes(name);
  const all = STAGES.map((stage) => [stage, ...(stage.meanwhile ? [stage.meanwhile] : [])]);
  return all.map((stages) => stages.filter(isMeant)).filter((stages) => stages.length > 0);
}

async function main(names: readonly string[]): Promise<number> {
  const known = chosen([]).flatMap((stages) => stages.map((stage) => stage.name));
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    console.error(`no such stage: ${unknown.join(", ")}; there is ${known.join(", ")}`);
    return 2;
  }
  const wasClean = (await uncommitted()) === "";
  const tallies: Tally[] = [];
  for (const stages of chosen(names)) {
    if (wasInterrupted()) break;
    console.log(`\n== ${stages.map((stage) => stage.name).join(", and meanwhile ")}`);
    const ended = await Promise.all(stages.map((stage) => stage.run()));
    tallies.push(...ended.flat());
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
