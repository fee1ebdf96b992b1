import type { LockNode } from "./node/node.ts";
import type { Tally } from "./quorum.ts";
import type { Holder, NodeVerdict } from "./types.ts";
import { quorumOf } from "./quorum.ts";

/** Asks one node; `settle` is called once, perhaps before `ask` returns. */
type Ask = (node: LockNode, settle: (verdict: NodeVerdict) => void) => void;

/**
 * Asks all nodes at once and reports as soon as `judge` knows (R2); answers after that change nothing here.
 * `askAll` false: nodes that the decision came too early for are not asked at all.
 */
export function poll<D>(
  nodes: readonly LockNode[],
  ask: Ask,
  judge: (tally: Tally, nodes: number) => D | null,
  askAll: boolean,
  decided: (decision: D, verdicts: readonly NodeVerdict[]) => void,
): void {
  const verdicts = nodes.map((node) => node.pending);
  let yes = 0;
  let no = 0;
  let mute = 0;
  let open = true;
  for (const [i, node] of nodes.entries()) {
    if (!open && !askAll) return;
    ask(node, (verdict) => {
      if (!open) return;
      verdicts[i] = verdict;
      if (verdict.outcome === "yes") yes += 1;
      else if (verdict.outcome === "held" || verdict.outcome === "absent") no += 1;
      else mute += 1;
      const decision = judge({ yes, no, mute }, nodes.length);
      if (decision === null) return;
      open = false;
      decided(decision, verdicts);
    });
  }
}

/** The value that a majority of the configured nodes bears, if one does. */
export function holderOf(verdicts: readonly NodeVerdict[]): Holder | null {
  const byValue = new Map<string, { votes: number; pttlMs: number }>();
  for (const verdict of verdicts) {
    if (verdict.outcome !== "held") continue;
    const seen = byValue.get(verdict.holder);
    byValue.set(verdict.holder, {
      votes: (seen?.votes ?? 0) + 1,
      pttlMs: Math.min(seen?.pttlMs ?? Infinity, verdict.pttlMs),
    });
  }
  for (const [value, { votes, pttlMs }] of byValue) {
    if (votes >= quorumOf(verdicts.length)) return { value, votes, pttlMs };
  }
  return null;
}
