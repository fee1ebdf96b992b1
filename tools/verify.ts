/**
 * `make verify`: everything CI enforces that needs nothing but Node, and that none of it changes or
 * leaves a file (looked at when the work tree was clean before). `node tools/verify.ts lint types` runs only the named checks.
 */
import { CHECKS, reportCheck, reportTree, uncommitted } from "./ci/checks.ts";
import { runCommand, wasInterrupted } from "./ci/command.ts";

async function verify(names: readonly string[]): Promise<boolean> {
  const unknown = names.filter((name) => !CHECKS.some((check) => check.name === name));
  if (unknown.length > 0) {
    const known = CHECKS.map((check) => check.name).join(", ");
    throw new Error(`no such check: ${unknown.join(", ")}; there is ${known}`);
  }
  let good = true;
  for (const check of CHECKS) {
    if (wasInterrupted()) return false;
    if (names.length === 0 || names.includes(check.name)) good = (await reportCheck(check)) && good;
  }
  return good;
}

async function verifyAll(): Promise<boolean> {
  const wasClean = (await uncommitted()) === "";
  let good = await verify([]);
  if (!wasInterrupted()) {
    const unit = await runCommand(["vitest", "run", "--project", "unit"]);
    good = unit.code === 0 && good;
  }
  if (wasClean) good = reportTree(await uncommitted()) && good;
  return good;
}

try {
  const names = process.argv.slice(2);
  const good = await (names.length === 0 ? verifyAll() : verify(names));
  process.exitCode = wasInterrupted() ? 130 : good ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
