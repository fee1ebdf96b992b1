import type { ScriptName } from "../scripts.ts";
import type { NodeOp } from "./op.ts";

/** A script call blocks the whole server: at ~3 µs a key this stays well under a millisecond. */
const LARGEST_BATCH = 128;

const due: (() => void)[] = [];

/** One process.nextTick for the batchers of all nodes. */
function atEndOfTurn(flush: () => void): void {
  if (due.push(flush) === 1) process.nextTick(flushDue);
}

function flushDue(): void {
  for (const flush of due.splice(0)) flush();
}

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
  let waiting: NodeOp[] = [];

  function flushAll(): void {
    const ops = waiting;
    waiting = [];
    const [first] = ops;
    if (first === undefined) return;
    if (ops.length === 1) flush(first.request.script, ops);
    else for (const group of groupsOf(ops)) flush(group.script, group.ops);
  }

  function add(op: NodeOp): void {
    if (waiting.push(op) === 1) atEndOfTurn(flushAll);
  }

  function drain(): NodeOp[] {
    const ops = waiting;
    waiting = [];
    return ops;
  }

  return { add, drain };
}

interface Group {
  readonly script: ScriptName;
  readonly ops: NodeOp[];
}

/** By script, at most LARGEST_BATCH each, with the operations on each key in their order. */
function groupsOf(ops: readonly NodeOp[]): Group[] {
  const groups: Group[] = [];
  const open = new Map<ScriptName, Group>();
  const scriptOfKey = new Map<string, ScriptName>();
  for (const op of ops) {
    const { key, script } = op.request;
    // ORDER: operations on one key must reach the server as they were submitted (a delete after the set it undoes).
    const before = scriptOfKey.get(key);
    if (before !== undefined && before !== script) {
      open.clear();
      scriptOfKey.clear();
    }
    scriptOfKey.set(key, script);
    let group = open.get(script);
    if (group === undefined || group.ops.length >= LARGEST_BATCH) {
      group = { script, ops: [] };
      groups.push(group);
      open.set(script, group);
    }
    group.ops.push(op);
  }
  return groups;
}
