import type { NodeVerdict } from "../types.ts";
import { type NodeFailure, replyReason, safeMessage } from "./reasons.ts";

/** What a script returned, as one item per key: for one key it returns that item alone. */
export function itemsOf(reply: unknown, keys: number): readonly unknown[] {
  if (keys === 1) return [reply];
  return Array.isArray(reply) ? (reply as unknown[]) : [];
}

/** One node's answers in the words of the callers. */
export function createVerdicts(node: string): {
  verdictOf(item: unknown): NodeVerdict;
  unknown(failure: NodeFailure): NodeVerdict;
  unavailable(failure: NodeFailure): NodeVerdict;
} {
  const unknown = ({ reason, message }: NodeFailure): NodeVerdict => ({
    node,
    outcome: "unknown",
    reason,
    message,
  });
  const unavailable = ({ reason, message }: NodeFailure): NodeVerdict => ({
    node,
    outcome: "unavailable",
    reason,
    message,
  });

  // The everyday answers, made once.
  const yes: NodeVerdict = { node, outcome: "yes" };
  const mine: NodeVerdict = { node, outcome: "yes", mine: true };
  const absent: NodeVerdict = { node, outcome: "absent" };

  /** @param item what a script returned for one key, as the heads of scripts/*.lua define it */
  function verdictOf(item: unknown): NodeVerdict {
    if (item === 1) return yes;
    if (item === 2) return mine;
    if (item === 0) return absent;
    const [text, detail] = Array.isArray(item) ? (item as unknown[]) : [];
    if (typeof text === "string" && typeof detail === "number") {
      return { node, outcome: "held", holder: text, pttlMs: detail };
    }
    if (typeof detail === "string") {
      return unavailable({ reason: replyReason(detail), message: safeMessage(detail, []) });
    }
    return unknown({ reason: "PROTOCOL", message: "an answer that no script of ours gives" });
  }

  return { verdictOf, unknown, unavailable };
}
