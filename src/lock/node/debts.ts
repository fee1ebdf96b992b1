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
/** So many of the newest are kept, and up to twice as many; the others are left to their TTL. */
const GENERATION = 10_000;

interface Store {
  get(pair: string): Debt | undefined;
  add(debt: Debt): void;
  /** Only this very debt: one that was called off may have a delete under way, and the pair a debt anew. */
  delete(debt: Debt): void;
  all(): Debt[];
  clear(): void;
  readonly size: number;
}

/**
 * By pair, in two generations of which the older is dropped whole: while a node is away each release adds a debt, and
 * finding the oldest in a Map of much coming and going means walking over all that went.
 */
function createStore(): Store {
  let young = new Map<string, Debt>();
  let old = new Map<string, Debt>();
  return {
    get: (pair) => young.get(pair) ?? old.get(pair),
    add(debt) {
      if (young.size >= GENERATION) {
        // A set that may land when nothing of it is remembered would stay for a whole lease.
        const orphans = [...old].filter(([, { orphan }]) => orphan).slice(-GENERATION);
        old = new Map([...orphans, ...young]);
        young = new Map();
      }
      young.set(debt.release.pair, debt);
    },
    delete(debt) {
      const { pair } = debt.release;
      if (young.get(pair) === debt) {
        young.delete(pair);
        // Such a Map leaves a chain of old tables behind, which the young collector takes for alive.
        if (young.size === 0) young = new Map();
      } else if (old.get(pair) === debt) old.delete(pair);
    },
    all: () => [...old.values(), ...young.values()],
    clear() {
      young.clear();
      old.clear();
    },
    get size() {
      return young.size + old.size;
    },
  };
}

export function createDebts(send: (op: NodeOp) => void): Debts {
  const debts = createStore();
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
    const debt: Debt = { release, leaseMs, wanted: false, orphan: false, until };
    debts.add(debt);
    return debt;
  }

  function pay(debt: Debt, answered?: (verdict: NodeVerdict) => void): void {
    const done = (verdict: NodeVerdict): boolean => {
      const sure = verdict.outcome !== "unavailable" && verdict.outcome !== "unknown";
      if (sure && !debt.orphan) debts.delete(debt);
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
    for (const debt of debts.all()) {
      if (debt.until <= now) debts.delete(debt);
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
      else debts.delete(debt);
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
      for (const debt of debts.all()) {
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
