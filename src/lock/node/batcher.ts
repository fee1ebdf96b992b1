import type { ScriptName } from "../scripts.ts";
import type { NodeOp } from "./op.ts";

/** A script call blocks the whole server: at ~3 µs a key this stays well under a millisecond. */
const LARGEST_BATCH = 128;

export interface Batcher {
  add(op: NodeOp): void;
  /** Takes out what was not flushed yet. */
  drain(): NodeOp[];
}

/**
 * Joins the operations of one event-loop turn into one call per script. A thousand ticks in the same second are then
 * a few dozen commands per node, and one client alone waits for nothing: the flush is the next thing that runs after
 * the current callback and its promises.
 */
export function createBatcher(
  flush: (script: ScriptName, ops: readonly NodeOp[]) => void,
): Batcher {
  const waiting = new Map<ScriptName, NodeOp[]>();
  // ORDER: operations on one key must reach the server as they were submitted (a delete after the set it undoes).
  const scriptOfKey = new Map<string, ScriptName>();
  let scheduled = false;

  function flushAll(): void {
    const groups = [...waiting];
    waiting.clear();
    scriptOfKey.clear();
    for (const [script, ops] of groups) flush(script, ops);
  }

  function add(op: NodeOp): void {
    const before = scriptOfKey.get(op.key);
    if (before !== undefined && before !== op.script) flushAll();
    scriptOfKey.set(op.key, op.script);
    const group = waiting.get(op.script);
    if (group === undefined) waiting.set(op.script, [op]);
    else if (group.push(op) >= LARGEST_BATCH) flushAll();
    if (scheduled) return;
    scheduled = true;
    process.nextTick(() => {
      scheduled = false;
      flushAll();
    });
  }

  function drain(): NodeOp[] {
    const ops = [...waiting.values()].flat();
    waiting.clear();
    scriptOfKey.clear();
    return ops;
  }

  return { add, drain };
}
