import type { Clock } from "../../clock.ts";
import type { LockNode } from "../node/node.ts";
import { holderOf, poll } from "../poll.ts";
import { judgeAcquire } from "../quorum.ts";
import type { AcquireResult, LockEntry, NodeVerdict } from "../types.ts";
import { grantFrom, stampOf } from "../validity.ts";

/** One try on all nodes (R2, R3). A failed one leaves nothing behind (R4). */
export function acquireOnce(
  nodes: readonly LockNode[],
  clock: Clock,
  entry: LockEntry,
): Promise<AcquireResult> {
  const { key, value, leaseMs } = entry;
  const { promise, resolve } = Promise.withResolvers<AcquireResult>();
  const asked = new Set<LockNode>();
  const submit = (node: LockNode, settle: (verdict: NodeVerdict) => void) =>
    node.submit({ script: "acquire", key, value, leaseMs, settle });
  // ORDER: before the first byte is sent; a node may grant from that moment on.
  const stamp = stampOf(clock);
  poll(
    nodes,
    (node, settle) => {
      const bar = node.bar();
      if (bar !== null) {
        settle(bar);
        return;
      }
      asked.add(node);
      submit(node, settle);
    },
    judgeAcquire,
    false,
    (decision, verdicts) => {
      const perNode = [...verdicts];
      const grant = decision === "acquired" ? grantFrom(entry, stamp, clock) : null;
      if (grant !== null) {
        // A quarantined node is given the value already, so that it can vouch for it when it votes again.
        for (const [i, node] of nodes.entries()) {
          if (perNode[i]?.outcome === "quarantined") submit(node, () => undefined);
        }
        resolve({ outcome: "acquired", grant, perNode });
        return;
      }
      for (const [i, node] of nodes.entries()) {
        if (asked.has(node) && isNewVote(perNode[i])) node.erase(key, value, leaseMs);
      }
      if (decision === "held") {
        resolve({ outcome: "held", holder: holderOf(perNode), perNode });
        return;
      }
      const reason = decision === "acquired" ? "tooSlow" : "nodes";
      resolve({ outcome: "noQuorum", reason, perNode });
    },
  );
  return promise;
}

/**
 * To be taken back, behind the set on its own connection: a set that is still under way is undone as well. What was
 * ours before the attempt is left alone.
 */
function isNewVote(verdict: NodeVerdict | undefined): boolean {
  if (verdict?.outcome === "yes") return verdict.mine !== true;
  return verdict?.outcome === "unknown";
}
