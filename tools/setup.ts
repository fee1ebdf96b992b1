/**
 * `make setup`, second half (the npm packages are there by now): what tests and demo need of the
 * machine. Quick when all of it is there. What cannot be had is said, with the way out, and does not
 * stop the rest: the tests that need it fail or are skipped with their own reason.
 */
import { ensureNodePrograms } from "../test/cluster/packages.ts";
import { CONTROL_PLANE_TOOLS, ensureTools, NODE_TOOLS } from "../test/cluster/tools.ts";
import { redisBinaries } from "../test/redis/binaries.ts";

const isRoot = process.getuid?.() === 0;

const say = (line: string): void => console.log(`[cluster] ${line}`);

const STEPS: readonly { name: string; run: () => Promise<unknown> }[] = [
  { name: "redis", run: redisBinaries },
  { name: "cluster", run: () => ensureTools(CONTROL_PLANE_TOOLS, say) },
  ...(isRoot
    ? [
        { name: "nodes", run: () => ensureTools(NODE_TOOLS, say) },
        { name: "nodes", run: () => ensureNodePrograms(say) },
      ]
    : []),
];

for (const { name, run } of STEPS) {
  try {
    await run();
  } catch (error) {
    console.error(`[${name}] ${error instanceof Error ? error.message : String(error)}`);
    console.error(`[${name}] going on without it`);
  }
}
