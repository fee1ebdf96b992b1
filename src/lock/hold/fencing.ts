import type { LockNode } from "../node/node.ts";
import { quorumOf } from "../quorum.ts";
import { counterScript } from "../scripts.ts";

/**
 * Where fencing tokens come from. A token is larger than every token that was given for the key before; the resource
 * that the lock protects refuses smaller ones. Strict: a counter of a linearizable store (a Kubernetes Lease's
 * `leaseTransitions` changed by compare-and-set). Best effort: the counter on the lock's own nodes.
 */
export interface FencingSource {
  /** Called while the lock is held. @throws Error when no token can be had; the lock is then released */
  next(key: string): Promise<bigint>;
}

/**
 * A counter on a majority of the nodes. Best effort: its tokens increase as long as no majority of the nodes forgets
 * them (an RDB restore, wiped nodes), and two holders at once, which Redlock cannot exclude, may be given the same.
 */
export function createCounter(
  nodes: readonly LockNode[],
  prefix: string,
  timeoutMs: number,
): FencingSource {
  const quorum = quorumOf(nodes.length);

  /** The answers of a majority, as soon as they are there. */
  async function round(key: string, add: number, least: bigint): Promise<bigint[]> {
    const { promise, resolve, reject } = Promise.withResolvers<bigint[]>();
    const answers: bigint[] = [];
    const timer = setTimeout(
      () => reject(new Error(`no fencing token: ${answers.length} of ${quorum} answers`)),
      timeoutMs,
    );
    const words = ["eval", counterScript, "1", prefix + key, String(add), String(least)];
    for (const node of nodes) {
      if (node.bar() !== null) continue;
      node.call(words, (reply) => {
        if (typeof reply === "string" && /^\d+$/.test(reply)) answers.push(BigInt(reply));
        if (answers.length === quorum) resolve([...answers]);
      });
    }
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async next(key) {
      const seen = await round(key, 1, 0n);
      const token = seen.reduce((a, b) => (a > b ? a : b));
      // ORDER: before the token is given out. Whoever asks a majority later meets one of these nodes, and gets more.
      await round(key, 0, token);
      return token;
    },
  };
}
