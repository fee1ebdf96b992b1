import { performance } from "node:perf_hooks";
import type { Clock } from "../../clock.ts";
import { LockLostError, type LockLostReason } from "../errors.ts";
import type {
  ExtendResult,
  LockEntry,
  LockObserver,
  NodeVerdict,
  ReleaseResult,
} from "../types.ts";
import { elapsedSince, type Grant, stampOf } from "../validity.ts";
import type { Alarms } from "./alarms.ts";

/** What a hold needs of the quorum lock. */
export interface HoldPort {
  extendMany(entries: readonly LockEntry[]): Promise<ExtendResult[]>;
  release(key: string, value: string, leaseMs: number): Promise<ReleaseResult>;
}

export interface HoldOptions {
  readonly port: HoldPort;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly observer: LockObserver;
  /** One per key; together they are held or they are not. */
  readonly grants: readonly Grant[];
  /** Renew every third of the lease. */
  readonly watchdog: boolean;
  /** Renew no more after so many milliseconds. */
  readonly maxHoldMs: number;
}

/** Some keys held under one value: `held`, then `lost` or `released`, for good (R6). */
export interface Hold {
  readonly keys: readonly string[];
  readonly value: string;
  /** Aborts with a LockLostError when the lock is lost; not when it is released. */
  signal(): AbortSignal;
  remainingMs(): number;
  isHeld(): boolean;
  /** @throws LockLostError when it is not held */
  assertHeld(): void;
  /** @throws LockLostError; resolves without effect when too few nodes answered but the lease still runs */
  renew(leaseMs: number): Promise<void>;
  release(): Promise<ReleaseResult["outcome"]>;
}

/** The watch looks at least so often: a wall clock that jumped, or a machine that slept, moves no timer. */
const LOOK_MS = 1_000;
/** After a renewal without a majority the next follows after this share of the lease. */
const RETRY_SHARE = 1 / 15;

export function createHold(options: HoldOptions): Hold {
  const { port, clock, alarms, observer, watchdog, maxHoldMs } = options;
  const began = stampOf(clock);
  // Made when somebody asks for it: most holds are short, and an AbortController is the dearest part of one.
  let aborter: AbortController | undefined;
  const [first] = options.grants;
  const value = first?.value ?? "";
  const keys = options.grants.map(({ key }) => key);
  let leaseMs = first?.leaseMs ?? 0;
  // Of all that was asked for, also where no majority answered: so long a key may be left on a node.
  let longestMs = leaseMs;
  let grants = options.grants;
  let state: "held" | LockLostReason = "held";
  let lastVerdicts: readonly NodeVerdict[] = [];
  let renewAt = leaseMs / 3;
  let renewing = false;
  const alarm = { dueAt: 0, place: -1, ring: watch };
  let released: Promise<ReleaseResult["outcome"]> | undefined;

  const heldMs = () => elapsedSince(began, clock);
  const remainingMs = () =>
    grants.reduce((least, grant) => Math.min(least, grant.remainingMs()), Infinity);
  const isHeld = () => state === "held" && remainingMs() > 0;
  const entries = (ms: number) => keys.map((key) => ({ key, value, leaseMs: ms }));

  function end(how: LockLostReason): void {
    state = how;
    alarms.cancel(alarm);
    if (observer.held === undefined) return;
    const holdMs = heldMs();
    observer.held({ end: how, holdMs, leaseMs, shareOfLease: holdMs / leaseMs });
  }

  function lose(how: LockLostReason): void {
    if (state !== "held") return;
    end(how);
    aborter?.abort(new LockLostError(how, keys, lastVerdicts));
    // What a hung node may still have of it would only be in the way of the next holder.
    for (const key of keys) void port.release(key, value, longestMs);
  }

  /** The deadline tells about the loss, not the failure of a call (R5). */
  function watch(): void {
    if (state !== "held") return;
    const left = remainingMs();
    if (left <= 0) {
      lose(heldMs() >= maxHoldMs ? "maxHold" : "deadline");
      return;
    }
    const held = watchdog ? heldMs() : 0;
    const due = renewAt - held;
    const mayRenew = watchdog && !renewing && held < maxHoldMs;
    // ORDER: after the look at the deadline. A process that slept over it must not renew what others may hold now.
    if (mayRenew && due <= 0) void keepAlive();
    const wake = mayRenew && due > 0 ? Math.min(left, due, LOOK_MS) : Math.min(left, LOOK_MS);
    alarm.dueAt = performance.now() + wake;
    alarms.set(alarm);
  }

  async function keepAlive(): Promise<void> {
    const renewed = await renewOnce(leaseMs);
    renewAt = heldMs() + leaseMs * (renewed ? 1 / 3 : RETRY_SHARE);
    if (state !== "held") return;
    alarms.cancel(alarm);
    watch();
  }

  /** @returns whether all keys were renewed */
  async function renewOnce(ms: number): Promise<boolean> {
    renewing = true;
    longestMs = Math.max(longestMs, ms);
    const results = await port.extendMany(entries(ms));
    renewing = false;
    // Released or past the deadline while the answers were under way: too late, whatever they say.
    if (state !== "held") return false;
    if (remainingMs() <= 0) {
      lose("deadline");
      return false;
    }
    const bad = results.find(({ outcome }) => outcome !== "renewed");
    lastVerdicts = (bad ?? results[0])?.perNode ?? [];
    if (results.some(({ outcome }) => outcome === "lost")) {
      lose("taken");
      return false;
    }
    // All or none: the least of them counts, and a key that was not renewed keeps its old grant.
    grants = results.map((result, i) =>
      result.outcome === "renewed" ? result.grant : grants[i],
    ) as Grant[];
    return bad === undefined;
  }

  function assertHeld(): void {
    if (isHeld()) return;
    if (state === "held") lose("deadline");
    throw new LockLostError(state === "held" ? "deadline" : state, keys, lastVerdicts);
  }

  async function releaseKeys(): Promise<ReleaseResult["outcome"][]> {
    const [only] = keys;
    if (only !== undefined && keys.length === 1) {
      return [(await port.release(only, value, longestMs)).outcome];
    }
    const results = await Promise.all(keys.map((key) => port.release(key, value, longestMs)));
    return results.map(({ outcome }) => outcome);
  }

  async function releaseAll(): Promise<ReleaseResult["outcome"]> {
    if (state !== "held") return "expired";
    const late = remainingMs() <= 0;
    end("released");
    const outcomes = await releaseKeys();
    if (outcomes.includes("unknown")) return "unknown";
    return late || outcomes.includes("expired") ? "expired" : "released";
  }

  watch();
  return {
    keys,
    value,
    signal() {
      // Whoever looks at it after a long turn of the event loop is told before the alarm can.
      if (state === "held" && remainingMs() <= 0) lose("deadline");
      if (aborter === undefined) {
        aborter = new AbortController();
        const lost = state !== "held" && state !== "released";
        if (lost) aborter.abort(new LockLostError(state as LockLostReason, keys, lastVerdicts));
      }
      return aborter.signal;
    },
    remainingMs: () => (state === "held" ? Math.max(0, remainingMs()) : 0),
    isHeld,
    assertHeld,
    async renew(ms) {
      assertHeld();
      const renewed = await renewOnce(ms);
      assertHeld();
      alarms.cancel(alarm);
      // Not renewed: the old lease still runs, and is soon over.
      if (renewed) leaseMs = ms;
      renewAt = heldMs() + leaseMs * (renewed ? 1 / 3 : RETRY_SHARE);
      watch();
    },
    release() {
      released ??= releaseAll();
      return released;
    },
  };
}
