import type { Clock } from "../../clock.ts";
import type { LockNode } from "../node/node.ts";
import { requestOf } from "../node/op.ts";
import { holderOf, poll } from "../poll.ts";
import { judgePresence } from "../quorum.ts";
import type { ExtendResult, LockEntry, NodeVerdict } from "../types.ts";
import { grantFrom, stampOf } from "../validity.ts";

/** Renewals whose answers are not all in: a release must end their right to heal. */
export interface Renewals {
  extend(nodes: readonly LockNode[], clock: Clock, entry: LockEntry): Promise<ExtendResult>;
  /** ORDER: before the release is sent. */
  stopHealing(key: string, value: string): void;
}

interface Renewal {
  readonly entry: LockEntry;
  /** nodes whose answer is still to come */
  open: number;
  state: "asking" | "confirmed" | "over";
}

/**
 * Renewal by value. Only nodes where the value was still found count; when they are a majority, the others are given
 * it back, with SET NX, and without counting now (R5): a lock that lost its majority must not vote itself back.
 */
export function createRenewals(): Renewals {
  const byKey = new Map<string, Set<Renewal>>();

  function begin(entry: LockEntry, open: number): Renewal {
    const renewal: Renewal = { entry, open, state: "asking" };
    const others = byKey.get(entry.key);
    if (others === undefined) byKey.set(entry.key, new Set([renewal]));
    else others.add(renewal);
    return renewal;
  }

  function answered(renewal: Renewal): void {
    renewal.open -= 1;
    if (renewal.open > 0) return;
    const all = byKey.get(renewal.entry.key);
    all?.delete(renewal);
    if (all?.size === 0) byKey.delete(renewal.entry.key);
  }

  function extend(
    nodes: readonly LockNode[],
    clock: Clock,
    entry: LockEntry,
  ): Promise<ExtendResult> {
    const { promise, resolve } = Promise.withResolvers<ExtendResult>();
    const renewal = begin(entry, nodes.length);
    const without: LockNode[] = [];
    const request = requestOf("extend", entry);
    const heal = (node: LockNode): void =>
      node.submit({ request: requestOf("acquire", entry), settle: () => undefined });

    const stamp = stampOf(clock);
    poll(
      nodes,
      (node, settle) => {
        const onVerdict = (verdict: NodeVerdict): void => {
          if (verdict.outcome === "absent" && node.bar()?.outcome !== "unsafe") {
            if (renewal.state === "asking") without.push(node);
            else if (renewal.state === "confirmed") heal(node);
          }
          answered(renewal);
          // A node that must not vote is renewed and healed like the others; only its word does not count.
          settle(node.bar() ?? verdict);
        };
        node.submit({ request, settle: onVerdict });
      },
      judgePresence,
      true,
      (decision, perNode) => {
        const grant = decision === "present" ? grantFrom(entry, stamp, clock) : null;
        const released = renewal.state === "over";
        renewal.state = grant !== null && !released ? "confirmed" : "over";
        if (grant !== null) {
          if (!released) without.forEach(heal);
          resolve({ outcome: "renewed", grant, perNode });
          return;
        }
        if (decision === "gone") {
          // Terminal (R6): what is left of it would only be in the way of the next holder.
          const left = ["yes", "unknown", "quarantined", "unsafe"];
          const undo = requestOf("release", entry);
          nodes.forEach((node, i) => {
            if (left.includes(perNode[i]?.outcome ?? "")) node.erase(undo);
          });
          resolve({ outcome: "lost", holder: holderOf(perNode), perNode });
          return;
        }
        resolve({
          outcome: "noQuorum",
          reason: decision === "present" ? "tooSlow" : "nodes",
          perNode,
        });
      },
    );
    return promise;
  }

  return {
    extend,
    stopHealing(key, value) {
      for (const renewal of byKey.get(key) ?? []) {
        if (renewal.entry.value === value) renewal.state = "over";
      }
    },
  };
}
