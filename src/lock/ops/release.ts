import type { LockNode } from "../node/node.ts";
import { requestOf } from "../node/op.ts";
import { holderOf, poll } from "../poll.ts";
import { judgePresence, type Tally } from "../quorum.ts";
import type { Inspection, LockEntry, ReleaseResult } from "../types.ts";

const OUTCOMES = { present: "released", gone: "expired", unknown: "unknown" } as const;

/** Deletes our value everywhere; says what a majority said, and goes on in the background with the rest (R4). */
export function releaseOnce(nodes: readonly LockNode[], entry: LockEntry): Promise<ReleaseResult> {
  const { promise, resolve } = Promise.withResolvers<ReleaseResult>();
  const request = requestOf("release", entry);
  poll(
    nodes,
    (node, settle) => node.erase(request, settle),
    judgePresence,
    true,
    (decision, perNode) => resolve({ outcome: OUTCOMES[decision], perNode }),
  );
  return promise;
}

/** Who holds a key, by every node that answers in time. Waits for all, not for a majority. */
export function inspectOnce(nodes: readonly LockNode[], key: string): Promise<Inspection> {
  const { promise, resolve } = Promise.withResolvers<Inspection>();
  const request = requestOf("inspect", { key, value: "", leaseMs: 0 });
  const all = ({ yes, no, mute }: Tally, count: number) =>
    yes + no + mute === count ? true : null;
  poll(
    nodes,
    (node, settle) => node.submit({ request, settle }),
    all,
    true,
    (_, perNode) => resolve({ holder: holderOf(perNode), perNode }),
  );
  return promise;
}

/** How long the background goes on for nodes that a forced release did not reach, milliseconds. */
const FORCE_BOUND_MS = 60_000;

/**
 * Takes the key from whoever has it, on every node that answers: by the value that was seen there, so that a holder
 * that came in between is left alone. Its owner learns of it at its next renewal.
 */
export async function forceReleaseOnce(
  nodes: readonly LockNode[],
  key: string,
): Promise<ReleaseResult> {
  const { perNode: seen } = await inspectOnce(nodes, key);
  const { promise, resolve } = Promise.withResolvers<ReleaseResult>();
  poll(
    nodes,
    (node, settle) => {
      const verdict = seen[nodes.indexOf(node)] ?? node.pending;
      if (verdict.outcome === "held") {
        const entry = { key, value: verdict.holder, leaseMs: FORCE_BOUND_MS };
        node.erase(requestOf("release", entry), settle);
      } else settle(verdict);
    },
    judgePresence,
    true,
    (decision, perNode) => resolve({ outcome: OUTCOMES[decision], perNode }),
  );
  return promise;
}
