import type { LockNode } from "./node/node.ts";
import type { Tally } from "./quorum.ts";
import type { Holder, NodeVerdict } from "./types.ts";
import { quorumOf } from "./quorum.ts";

/** Asks one node; `settle` is called once, perhaps before `ask` returns. */
type Ask = (node: LockNode, settle: (verdict: NodeVerdict) => void) => void;

/**
 * Asks all nodes at once and reports as soon as `judge` knows (R2); answers after that change nothing here.
 * `askAll` false: nodes that the decision came too early for are not asked at all; `asked` is how many were.
 */
export function poll<D>(
  nodes: readonly LockNode[],
  ask: Ask,
  judge: (tally: Tally, nodes: number) => D | null,
  askAll: boolean,
  decided: (decision: D, verdicts: readonly NodeVerdict[], asked: number) => void,
): void {
  const verdicts = nodes.map((node) => node.pending);
  const tally = { yes: 0, no: 0, mute: 0 };
  let asked = 0;
  let open = true;
  nodes.forEach((node, i) => {
    if (!open && !askAll) return;
    asked += 1;
    ask(node, (verdict) => {
      if (!open) return;
      verdicts[i] = verdict;
      tally[sideOf(verdict)] += 1;
      const decision = judge(tally, nodes.length);
      if (decision === null) return;
      open = false;
      decided(decision, verdicts, asked);
    });
  });
}

function sideOf({ outcome }: NodeVerdict): keyof Tally {
  if (outcome === "yes") return "yes";
  return outcome === "held" || outcome === "absent" ? "no" : "mute";
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
