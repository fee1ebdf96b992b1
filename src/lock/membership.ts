import { createHash } from "node:crypto";
import type { Entry, Marker } from "./node/marker.ts";
import type { NodeFailure } from "./node/reasons.ts";
import { quorumOf } from "./quorum.ts";

/**
 * One list of nodes for everybody (docs/adr/0016-node-list.md). Each node bears the list that it serves, and gives no
 * vote to whoever has another one, so two lists that share a node cannot both have a majority unnoticed.
 *
 * A list takes the place of another in three steps: it is entered on the nodes of both, which retires the old one there;
 * when a majority of the old list is retired, nobody can acquire or renew by it any more; when the longest lease has
 * passed since, nobody holds anything by it, and the new list is put in force.
 */
export interface Membership {
  /** What to tell a node that has just been connected to. `fresh` only after all nodes were looked at once. */
  entry(history: string, fresh: boolean): Entry;
  /** What its data say. Undefined: it could not be reached. */
  saw(node: string, marker: Marker | undefined): void;
  /** All nodes were looked at once, or could not be reached. */
  readonly allLookedAt: Promise<void>;
  /** No node bears a list: nothing has ever been locked here, or everything is lost. */
  isFounding(): boolean;
  /** Why this node must not be asked to vote; undefined: it may be. */
  trouble(node: string): NodeFailure | undefined;
  close(): void;
}

export interface MembershipOptions {
  readonly list: string;
  readonly nodes: readonly string[];
  /** The list that this one takes the place of. */
  readonly previous?: { readonly list: string; readonly nodes: readonly string[] };
  readonly maxLeaseMs: () => number;
  /** The list is in force now: nodes that do not bear it so are to be connected to anew. */
  readonly onForce: () => void;
}

/** The same for everybody who lists the same addresses, in any order: number of nodes and a digest. */
export function listIdOf(addresses: readonly string[]): string {
  const digest = createHash("sha256").update(addresses.toSorted().join("\n")).digest("hex");
  return `${addresses.length}-${digest.slice(0, 10)}`;
}

export function createMembership(options: MembershipOptions): Membership {
  const { list, nodes, previous, maxLeaseMs, onForce } = options;
  const markers = new Map<string, Marker>();
  const retired = new Set<string>();
  const waiting = new Set([...nodes, ...(previous?.nodes ?? [])]);
  const allLookedAt = Promise.withResolvers<void>();
  let inForce = false;
  let drained: NodeJS.Timeout | undefined;
  let closed = false;

  const foreign = (): [string, Marker] | undefined =>
    [...markers].find(
      ([node, marker]) => marker.list !== "" && marker.list !== list && isVoter(node),
    );
  const isVoter = (node: string) => nodes.includes(node);
  const isPending = () => [...markers.values()].some((m) => m.list === list && !m.inForce);

  function putInForce(): void {
    if (inForce) return;
    inForce = true;
    onForce();
  }

  function note(node: string, marker: Marker): void {
    markers.set(node, marker);
    if (marker.list !== list) return;
    if (marker.inForce) putInForce();
    if (previous === undefined || !previous.nodes.includes(node)) return;
    retired.add(node);
    if (retired.size < quorumOf(previous.nodes.length) || inForce || closed) return;
    // From here on nobody acquires or renews by the old list; what is held by it runs out within a lease.
    drained ??= setTimeout(putInForce, maxLeaseMs());
  }

  return {
    entry: (history, fresh) => {
      const mark = previous === undefined && !isPending() ? list : `${list}?`;
      return {
        history,
        list,
        previous: previous?.list ?? "",
        force: inForce,
        // Beside a foreign list nothing is entered: it may be ours that is the wrong one.
        fresh: !fresh || foreign() !== undefined ? "" : inForce ? list : mark,
      };
    },
    saw(node, marker) {
      if (marker !== undefined) note(node, marker);
      waiting.delete(node);
      if (waiting.size === 0) allLookedAt.resolve();
    },
    allLookedAt: allLookedAt.promise,
    isFounding: () => [...markers.values()].every((marker) => marker.list === ""),
    trouble(node) {
      const other = foreign();
      if (other !== undefined) {
        const [where, { list: theirs }] = other;
        return {
          reason: "NODELIST",
          message:
            `${where} serves the list of nodes ${theirs}, this one is ${list}: give the same nodes to all, ` +
            "or name those before as previousNodes",
        };
      }
      const marker = markers.get(node);
      if (marker === undefined || (marker.list === list && marker.inForce)) return undefined;
      const why =
        marker.list === ""
          ? "the node bears none, perhaps because its memory is full"
          : drained === undefined
            ? "waiting for a majority of the nodes before to be retired"
            : "waiting for the locks of the nodes before to run out";
      return {
        reason: "NODELIST",
        message: `the list of nodes ${list} is not in force yet: ${why}`,
      };
    },
    close() {
      closed = true;
      clearTimeout(drained);
    },
  };
}
