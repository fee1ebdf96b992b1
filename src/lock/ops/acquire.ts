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
  const asked: LockNode[] = [];
  // ORDER: before the first byte is sent; a node may grant from that moment on.
  const stamp = stampOf(clock);
  poll(
    nodes,
    (node, settle) => {
      asked.push(node);
      node.submit({ script: "acquire", key, value, leaseMs, settle });
    },
    judgeAcquire,
    false,
    (decision, verdicts) => {
      const perNode = [...verdicts];
      const grant = decision === "acquired" ? grantFrom(entry, stamp, clock) : null;
      if (grant !== null) {
        resolve({ outcome: "acquired", grant, perNode });
        return;
      }
      undo(asked, perNode, entry);
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
 * Takes back the votes of an attempt that failed: behind the set on its own connection, so that a set that is still
 * under way is undone as well. A vote that was ours before the attempt is left alone.
 */
function undo(
  asked: readonly LockNode[],
  perNode: readonly NodeVerdict[],
  { key, value, leaseMs }: LockEntry,
): void {
  // Nodes are asked in order, so both lists begin with the same ones.
  for (const [i, node] of asked.entries()) {
    const verdict = perNode[i];
    const newVote = verdict?.outcome === "yes" && verdict.mine !== true;
    if (newVote || verdict?.outcome === "unknown") node.erase(key, value, leaseMs);
  }
}
