/**
 * A holder in a process of its own, to be stopped and killed: locks `key`, and says as JSON lines what it believes.
 *   node paused-client.ts <key> <leaseMs> <watchdog> <url>…
 */
import { createQuorumLock } from "../../src/lock/index.ts";

const [key = "", leaseMs = "", watchdog, ...nodes] = process.argv.slice(2);
const lock = createQuorumLock({ nodes, listId: "bed" });
const held = await lock.acquire(key, { leaseMs: Number(leaseMs), watchdog: watchdog === "true" });
const say = (what: string) =>
  process.stdout.write(
    `${JSON.stringify({ what, isHeld: held.isHeld(), aborted: held.signal.aborted })}\n`,
  );
say("acquired");
// What comes in while the process is stopped is read in the first turn after it.
process.stdin.on("data", () => say("asked"));
