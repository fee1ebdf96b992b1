import type { Clock } from "../../clock.ts";
import type { LockNode } from "../node/node.ts";
import { holderOf, poll } from "../poll.ts";
import { judgeAcquire } from "../quorum.ts";
import { requestOf } from "../node/op.ts";
import type { AcquireResult, LockEntry, NodeVerdict } from "../types.ts";
import { grantFrom, stampOf } from "../validity.ts";

/** One try on all nodes (R2, R3). A failed one leaves nothing behind (R4). */
export function acquireOnce(
  nodes: readonly LockNode[],
  clock: Clock,
  entry: LockEntry,
): Promise<AcquireResult> {
  const { promise, resolve } = Promise.withResolvers<AcquireResult>();
  const request = requestOf("acquire", entry);
  // ORDER: before the first byte is sent; a node may grant from that moment on.
  const stamp = stampOf(clock);
  poll(
    nodes,
    (node, settle) => {
      const bar = node.bar();
      if (bar === null) node.submit({ request, settle });
      else settle(bar);
    },
    judgeAcquire,
    false,
    (decision, perNode, asked) => {
      const grant = decision === "acquired" ? grantFrom(entry, stamp, clock) : null;
      if (grant !== null) {
        // A quarantined node is given the value already, so that it can vouch for it when it votes again.
        nodes.forEach((node, i) => {
          if (perNode[i]?.outcome === "quarantined") {
            node.submit({ request, settle: () => undefined });
          }
        });
        resolve({ outcome: "acquired", grant, perNode });
        return;
      }
      const undo = requestOf("release", entry);
      nodes.slice(0, asked).forEach((node, i) => {
        if (isNewVote(perNode[i])) node.erase(undo);
      });
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
