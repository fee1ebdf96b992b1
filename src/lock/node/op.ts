import { scripts, type ScriptName } from "../scripts.ts";
import type { LockEntry, NodeVerdict } from "../types.ts";

/** What is asked about one key. One object for all nodes: what each of them would make of it is made once. */
export interface Request extends LockEntry {
  readonly script: ScriptName;
  /** Key and value in one; length first, so that no two pairs look the same. */
  readonly pair: string;
  /** Its share of KEYS and of ARGV as RESP bulk strings, and how many those are. */
  readonly keyOnWire: string;
  readonly argsOnWire: string;
  readonly words: number;
}

/** One request on one node. */
export interface NodeOp {
  readonly request: Request;
  /** Called exactly once, perhaps synchronously. */
  readonly settle: (verdict: NodeVerdict) => void;
  /** The answer came after all, when `settle` had said unknown. */
  readonly late?: (verdict: NodeVerdict) => void;
}

export function requestOf(script: ScriptName, { key, value, leaseMs }: LockEntry): Request {
  const args = argsOf(script, value, leaseMs);
  return {
    script,
    key,
    value,
    leaseMs,
    pair: `${key.length}:${key}${value}`,
    keyOnWire: bulkString(key),
    argsOnWire: args.map(bulkString).join(""),
    words: 1 + args.length,
  };
}

/** ARGV of one key in the order that the head of its script documents. */
function argsOf(script: ScriptName, value: string, leaseMs: number): string[] {
  switch (script) {
    case "acquire":
    case "extend":
      return [value, String(leaseMs)];
    case "release":
      return [value];
    case "inspect":
      return [];
  }
}

/** Whether a yes is a vote: given only by the data, and for the list of nodes, that the client knows. */
export function isVote(script: ScriptName): boolean {
  return script === "acquire" || script === "extend";
}

/** https://redis.io/docs/latest/develop/reference/protocol-spec/#bulk-strings */
export function bulkString(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

const BY_SHA = new Map(
  Object.values(scripts).map(({ name, sha }) => [name, bulkString("evalsha") + bulkString(sha)]),
);

function beginning(script: ScriptName, by: EvalBy): string {
  const bySha = by === "evalsha" ? BY_SHA.get(script) : undefined;
  return bySha ?? bulkString("eval") + bulkString(scripts[script].source);
}

export type EvalBy = "evalsha" | "eval";

/** One script call for many keys, as it goes over the wire. */
export function callOnWire(
  script: ScriptName,
  by: EvalBy,
  ops: readonly NodeOp[],
  marker: { readonly keyOnWire: string; readonly textOnWire: string },
): string {
  const vote = isVote(script);
  let words = vote ? 5 : 3;
  let keys = vote ? marker.keyOnWire : "";
  let args = vote ? marker.textOnWire : "";
  for (const { request } of ops) {
    words += request.words;
    keys += request.keyOnWire;
    args += request.argsOnWire;
  }
  const numkeys = bulkString(String(ops.length + Number(vote)));
  return `*${words}\r\n${beginning(script, by)}${numkeys}${keys}${args}`;
}
