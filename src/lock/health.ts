import type { LockNode } from "./node/node.ts";
import { quorumOf } from "./quorum.ts";
import type { LockHealth } from "./types.ts";

export function healthOf(nodes: readonly LockNode[]): LockHealth {
  const all = nodes.map((node) => node.health());
  const up = all.filter(({ state }) => state === "up").length;
  const needed = quorumOf(nodes.length);
  return { quorum: up >= needed, up, needed, nodes: all };
}

/** One line for a probe, a condition or a log: who is missing, and why. */
export function describeHealth(health: LockHealth): string {
  const missing = health.nodes
    .filter(({ state }) => state !== "up")
    .map(
      ({ node, reason, message }) =>
        `${node} ${reason ?? "down"} (${message ?? "no reason given"})`,
    );
  const head = `${health.up} of ${health.nodes.length} Redis nodes up (${health.needed} needed)`;
  return [head, ...missing].join("; ");
}
