import type { LockNode } from "./node/node.ts";
import { quorumOf } from "./quorum.ts";
import { LockConfigError } from "./errors.ts";
import type { LockHealth, NodeHealth, NodeVerdict } from "./types.ts";

export function healthOf(nodes: readonly LockNode[]): LockHealth {
  const all = nodes.map((node) => node.health());
  const up = all.filter(({ state }) => state === "up").length;
  const needed = quorumOf(nodes.length);
  return { quorum: up >= needed, up, needed, nodes: all };
}

/** One line for a probe, a condition or a log: who is missing, and why; who votes, and should be looked at. */
export function describeHealth(health: LockHealth): string {
  const missing = health.nodes
    .filter(({ state }) => state !== "up")
    .map(
      ({ node, reason, message }) =>
        `${node} ${reason ?? "down"} (${message ?? "no reason given"})`,
    );
  const head = `${health.up} of ${health.nodes.length} Redis nodes up (${health.needed} needed)`;
  const concerns = health.nodes.flatMap(({ node, concern }) =>
    concern === undefined ? [] : [`${node} ${concern.reason} (${concern.message})`],
  );
  return [head, ...missing, ...concerns].join("; ");
}

/** What no waiting mends: somebody has to change the configuration, of this process or of the node. */
const MISCONFIGURED =
  /^(CLUSTER|READONLY|PROTOCOL|NOPERM|NOAUTH|WRONGPASS|NOCOMMAND|PASSWORDFILE|NOMASTER|EVICTION|DUPLICATE|NODELIST|NOREPLICAS|ENOTFOUND|EAI_AGAIN|ERR_(TLS|SSL)_\w+|\w*(CERT|SELF_SIGNED)\w*)$/;

/** @throws LockConfigError for the first such node; its message names all of them */
export function refuseMisconfigured(health: LockHealth): void {
  const wrong = health.nodes.flatMap(({ node, reason = "", message = "" }, i) =>
    MISCONFIGURED.test(reason)
      ? [{ field: `nodes[${i}]`, text: `${node} ${reason}: ${message}` }]
      : [],
  );
  const [first, ...others] = wrong;
  if (first === undefined) return;
  const more = others.map(({ field, text }) => `; ${field}: ${text}`).join("");
  const perNode = health.nodes.map(verdictOf);
  throw new LockConfigError("BadNode", first.field, first.text + more, perNode);
}

/** A node's health in the words of a verdict. */
function verdictOf({ node, state, reason = "", message = "" }: NodeHealth): NodeVerdict {
  if (state === "up") return { node, outcome: "yes" };
  return { node, outcome: state === "unsafe" ? "unsafe" : "unavailable", reason, message };
}
