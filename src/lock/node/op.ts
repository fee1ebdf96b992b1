import { type ScriptName } from "../scripts.ts";
import type { NodeVerdict } from "../types.ts";

/** One key's share of a script call on one node. */
export interface NodeOp {
  readonly script: ScriptName;
  readonly key: string;
  /** empty for inspect */
  readonly value: string;
  /** milliseconds; 0 for release and inspect */
  readonly leaseMs: number;
  /** Called exactly once, perhaps synchronously. */
  readonly settle: (verdict: NodeVerdict) => void;
  /** The answer came after all, when `settle` had said unknown. */
  readonly late?: (verdict: NodeVerdict) => void;
}

/** ARGV of one op in the order that the head of its script documents. */
export function argvOf(op: NodeOp): (string | number)[] {
  switch (op.script) {
    case "acquire":
    case "extend":
      return [op.value, op.leaseMs];
    case "release":
      return [op.value];
    case "inspect":
      return [];
  }
}
