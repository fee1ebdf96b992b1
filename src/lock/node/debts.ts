import { performance } from "node:perf_hooks";
import type { NodeVerdict } from "../types.ts";
import { type NodeOp, type Request, requestOf } from "./op.ts";

/** Deletes that a node still owes us, and sets that may yet land on it (R4). */
export interface Debts {
  /** A set is about to be sent again for this pair: what was owed before must not delete it. */
  cancel(pair: string): void;
  /** Delete the pair now if possible, and go on until it is sure or the key has died of its TTL. */
  settle(release: Request, answered?: (v: NodeVerdict) => void): void;
  /** The connection ended with these sets unanswered. */
  orphaned(ops: readonly NodeOp[]): void;
  /** A new connection is ready. `sameProcess`: the server is the incarnation that the orphans were sent to. */
  connected(sameProcess: boolean): void;
  close(): void;
  readonly size: number;
}

interface Debt {
  /** still to be paid; a debt that was called off may have a delete under way */
  open: boolean;
  readonly release: Request;
  /** of the longest-lived set that may be there */
  leaseMs: number;
  /** a delete is wanted; otherwise it is only remembered that a set may land */
  wanted: boolean;
  /** a set of a dead connection may land at any moment */
  orphan: boolean;
  /** monotonic; nothing of ours can be there afterwards. Unknown while an orphan waits for the node to return. */
  until: number;
}

/** A hung server that resumes reads all its sockets within moments; later rounds are for what a network held back. */
const ROUNDS_MS = [250, 1_000, 4_000, 15_000, 60_000] as const;
/** Beyond this the oldest are left to their TTL. */
const MOST = 10_000;

export function createDebts(send: (op: NodeOp) => void): Debts {
  let debts = new Map<string, Debt>();
  let timer: NodeJS.Timeout | undefined;

  function remember(release: Request): Debt {
    const { leaseMs, pair } = release;
    const until = performance.now() + leaseMs;
    const known = debts.get(pair);
    if (known !== undefined) {
      known.leaseMs = Math.max(known.leaseMs, leaseMs);
      known.until = Math.max(known.until, until);
      return known;
    }
    const [oldest] = debts.size < MOST ? [] : debts.values();
    if (oldest !== undefined) forget(oldest);
    const debt: Debt = { open: true, release, leaseMs, wanted: false, orphan: false, until };
    debts.set(pair, debt);
    return debt;
  }

  function forget(debt: Debt): void {
    if (!debt.open) return;
    debt.open = false;
    debts.delete(debt.release.pair);
    // A Map of much coming and going leaves a chain of old tables behind, which the young collector takes for alive.
    if (debts.size === 0) debts = new Map();
  }

  function pay(debt: Debt, answered?: (verdict: NodeVerdict) => void): void {
    const done = (verdict: NodeVerdict): boolean => {
      const sure = verdict.outcome !== "unavailable" && verdict.outcome !== "unknown";
      if (sure && !debt.orphan) forget(debt);
      return sure;
    };
    send({
      request: debt.release,
      settle: (verdict) => {
        const sure = done(verdict);
        // Refused or silent on a connection that stays: the rounds of the next connection would never come.
        if (!sure && timer === undefined) startRounds();
        answered?.(verdict);
      },
      late: done,
    });
  }

  function startRounds(step = 0): void {
    const delay = ROUNDS_MS[step];
    if (delay === undefined || debts.size === 0) return;
    timer = setTimeout(() => {
      round();
      timer = undefined;
      startRounds(step + 1);
    }, delay);
  }

  function round(): void {
    const now = performance.now();
    for (const debt of debts.values()) {
      if (debt.until <= now) forget(debt);
      else if (debt.wanted) pay(debt);
    }
  }

  function stopRounds(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  return {
    cancel(pair) {
      if (debts.size === 0) return;
      const debt = debts.get(pair);
      if (debt === undefined) return;
      if (debt.orphan) debt.wanted = false;
      else forget(debt);
    },
    settle(release, answered) {
      const debt = remember(release);
      debt.wanted = true;
      pay(debt, answered);
    },
    orphaned(ops) {
      for (const { request } of ops) {
        const debt = remember(requestOf("release", request));
        debt.orphan = true;
        // It may wait in the socket buffer of a stopped server for any time; its TTL begins when it lands.
        debt.until = Infinity;
      }
    },
    connected(sameProcess) {
      const now = performance.now();
      for (const debt of debts.values()) {
        if (!debt.orphan) continue;
        debt.until = now + debt.leaseMs;
        // The process that had it in its buffer is gone, and the set with it.
        if (!sameProcess) debt.orphan = false;
      }
      stopRounds();
      round();
      startRounds();
    },
    close() {
      stopRounds();
      debts.clear();
    },
    get size() {
      return debts.size;
    },
  };
}
