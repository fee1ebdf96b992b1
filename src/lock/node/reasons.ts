import type { NodeReason } from "../types.ts";

/** Why a node is not there, in a form that may be logged. */
export interface NodeFailure {
  readonly reason: NodeReason;
  /** One line, bounded, without secrets. */
  readonly message: string;
}

/** Redis answers that do not start with their code, or whose code says less than we know. */
const BY_TEXT: readonly (readonly [RegExp, NodeReason])[] = [
  [/^INCARNATION\b/, "INCARNATION"],
  [/\bWRONGPASS\b|invalid password/i, "WRONGPASS"],
  [/\bNOAUTH\b|Authentication required/i, "NOAUTH"],
  [/\bNOPERM\b|user executing the script can't|has no permissions/i, "NOPERM"],
  [/\bWRONGTYPE\b/, "WRONGTYPE"],
  [/\bOOM\b/, "OOM"],
  [/\bREADONLY\b|write against a read only replica/i, "READONLY"],
  [/\bNOREPLICAS\b/, "NOREPLICAS"],
  [/\bMISCONF\b/, "MISCONF"],
  [/\b(MOVED|CLUSTERDOWN|CROSSSLOT|ASK)\b/, "CLUSTER"],
  [/Protocol error|unexpected (first byte|char)|Please report this/i, "PROTOCOL"],
];

const LONGEST = 200;

/** Cuts to one bounded line and hides the secrets (an "unknown command" answer echoes its arguments). */
export function safeMessage(text: string, secrets: readonly string[]): string {
  let line = text.replaceAll(/\s+/g, " ").trim();
  for (const secret of secrets) if (secret !== "") line = line.replaceAll(secret, "***");
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}

/** The reason in a Redis error answer. */
export function replyReason(message: string): NodeReason {
  const known = BY_TEXT.find(([pattern]) => pattern.test(message));
  if (known !== undefined) return known[1];
  return /^-?([A-Z]{2,})\b/.exec(message)?.[1] ?? "ERR";
}

/** The reason in whatever a socket, TLS, ioredis or Redis threw. Never passes the error on: it may hold arguments. */
export function failureOf(error: unknown, secrets: readonly string[]): NodeFailure {
  const { code, message, name } = error as { code?: unknown; message?: unknown; name?: unknown };
  const text = typeof message === "string" && message !== "" ? message : String(code ?? name);
  const reason =
    typeof code === "string" && code !== "" && name !== "ReplyError" ? code : replyReason(text);
  return { reason, message: safeMessage(text, secrets) };
}

/** An error that carries a reason we know already. */
export class NodeError extends Error {
  readonly code: NodeReason;

  constructor(code: NodeReason, message: string) {
    super(message);
    this.name = "NodeError";
    this.code = code;
  }
}

/** After these answers the connection is of no use: the node is no master of ours any more, or we are not let in. */
export function endsConnection(reason: NodeReason): boolean {
  return [
    "INCARNATION",
    "READONLY",
    "MASTERDOWN",
    "NOAUTH",
    "WRONGPASS",
    "CLUSTER",
    "PROTOCOL",
  ].includes(reason);
}
