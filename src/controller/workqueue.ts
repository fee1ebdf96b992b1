import type { Clock, Timers } from "../clock.ts";
import { backoffMs } from "../domain/backoff.ts";
import { createLines, type Waiting } from "./lines.ts";
import { createWakeups } from "./wakeups.ts";

/**
 * The work queue between watches and reconcile: it holds keys, never objects, so however many events arrive for a key
 * there is one reconcile of its newest state (level-based). A key that is being reconciled is locked: what arrives for
 * it meanwhile makes one more reconcile afterwards. Higher priorities go first, equal ones in order of arrival.
 */

/** How a reconcile ends. There is no fifth way: throwing counts as `retry`. */
export type Outcome =
  | { kind: "done" }
  /** Look again at `at`, wall-clock milliseconds. */
  | { kind: "again"; at: number }
  /** Look again after a back-off of its own per key; not before `afterMs` (a server's Retry-After), when given. */
  | { kind: "retry"; error: unknown; afterMs?: number }
  /** Retrying cannot help: wait until something changes the object. */
  | { kind: "terminal"; error: unknown };

export const done = (): Outcome => ({ kind: "done" });
export const again = (at: number): Outcome => ({ kind: "again", at });
export const terminal = (error: unknown): Outcome => ({ kind: "terminal", error });
export const retry = (error: unknown, afterMs?: number): Outcome =>
  afterMs === undefined ? { kind: "retry", error } : { kind: "retry", error, afterMs };

export interface ReconcileContext {
  /** Aborts when the queue was told to drain and its time is up. */
  signal: AbortSignal;
  /** How many reconciles of this key in a row ended in `retry`. */
  failures: number;
  priority: number;
}

export interface QueueHooks {
  /** A key is added, be it that it waits already. */
  onAdd?(): void;
  /** `waitMs`: from being queued to being started; `runMs`: the reconcile itself. */
  onOutcome?(key: string, outcome: Outcome, times: { waitMs: number; runMs: number }): void;
  /** A reconcile still runs after `stuckAfterMs`, and again each time as long has passed. It is not stopped. */
  onStuck?(key: string, runMs: number): void;
}

export interface WorkQueueOptions {
  reconcile(key: string, context: ReconcileContext): Promise<Outcome>;
  /** How many keys are reconciled at the same time, at least 1. */
  concurrency: number;
  clock: Clock;
  timers: Timers;
  /** In [0, 1), as Math.random. */
  random: () => number;
  /** Of `retry`: base·2^n milliseconds, at most max, of which a random half is taken off. Default 100 and 60,000. */
  backoff?: { baseMs: number; maxMs: number };
  /** Keys of a lower priority wait for now; `resume` tells that this has changed. Default: none do. */
  floor?: () => number;
  /** Default 60,000 ms. */
  stuckAfterMs?: number;
  hooks?: QueueHooks;
}

export interface Priority {
  priority?: number;
}

export interface QueueStats {
  queued: number;
  scheduled: number;
  running: { key: string; runMs: number }[];
  /** Keys whose last reconcile ended in `retry`. */
  failing: number;
}

export interface WorkQueue extends AsyncDisposable {
  add(key: string, options?: Priority): void;
  addAfter(key: string, ms: number, options?: Priority): void;
  /** `wallMs` on the wall clock. Of several wake-ups of a key the earliest is kept. */
  addAt(key: string, wallMs: number, options?: Priority): void;
  /** The object is gone: forgets what was planned for it, and its failures. A reconcile that runs goes on. */
  forget(key: string): void;
  stats(): QueueStats;
  /** Keys of this priority or a higher one that wait for their turn; costs nothing. */
  waiting(atLeast?: number): number;
  /** The keys that are to be started next, at most so many, of this priority or a higher one. */
  upcoming(count: number, atLeast: number): string[];
  /** The floor has fallen. */
  resume(): void;
  /**
   * Takes nothing more, starts nothing more, and waits for what runs; when `timeoutMs` are over, aborts the signal of
   * what still runs and returns its keys.
   */
  drain(timeoutMs: number): Promise<string[]>;
}

const DEFAULT_BACKOFF = { baseMs: 100, maxMs: 60_000 };
const DEFAULT_STUCK_MS = 60_000;

interface Running {
  startedAt: number;
  /** Set when the key was added while it ran. */
  dirty?: Waiting;
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { concurrency, clock, timers, random, hooks = {} } = options;
  const backoff = options.backoff ?? DEFAULT_BACKOFF;
  const stuckAfterMs = options.stuckAfterMs ?? DEFAULT_STUCK_MS;
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new RangeError(
      `work queue: concurrency must be a whole number from 1, not ${concurrency}`,
    );
  }

  const lines = createLines();
  const running = new Map<string, Running>();
  const failures = new Map<string, number>();
  const wakeups = createWakeups({ clock, timers, wake: (key, priority) => add(key, { priority }) });
  const stop = new AbortController();
  let draining = false;
  let whenIdle: (() => void) | undefined;

  function add(key: string, { priority = 0 }: Priority = {}): void {
    if (draining) return;
    hooks.onAdd?.();
    const locked = running.get(key);
    if (locked !== undefined) {
      locked.dirty ??= { priority, since: clock.monotonic() };
      locked.dirty.priority = Math.max(locked.dirty.priority, priority);
      return;
    }
    lines.push(key, { priority, since: clock.monotonic() });
    startMore();
  }

  /** Starts on a later turn, so that all adds of one turn (a relist, a sweep of ticks) are put in order first. */
  let starting = false;
  function startMore(): void {
    if (starting) return;
    starting = true;
    queueMicrotask(() => {
      starting = false;
      while (running.size < concurrency) {
        const next = draining ? undefined : lines.shift(options.floor?.());
        if (next === undefined) return;
        void run(next.key, next.waiting);
      }
    });
  }

  async function run(key: string, waiting: Waiting): Promise<void> {
    const state: Running = { startedAt: clock.monotonic() };
    running.set(key, state);
    const stopWatching = watchForStuck(key, state.startedAt);
    const context: ReconcileContext = {
      signal: stop.signal,
      failures: failures.get(key) ?? 0,
      priority: waiting.priority,
    };
    let outcome: Outcome;
    try {
      outcome = await options.reconcile(key, context);
    } catch (error) {
      outcome = retry(error);
    }
    stopWatching();
    running.delete(key);
    const runMs = clock.monotonic() - state.startedAt;
    settle(key, outcome, waiting.priority);
    if (state.dirty !== undefined && !draining) lines.push(key, state.dirty);
    report(() =>
      hooks.onOutcome?.(key, outcome, { runMs, waitMs: state.startedAt - waiting.since }),
    );
    if (running.size === 0) whenIdle?.();
    startMore();
  }

  function settle(key: string, outcome: Outcome, priority: number): void {
    if (outcome.kind !== "retry") {
      failures.delete(key);
      if (outcome.kind === "again") wakeups.at(key, outcome.at, priority);
      return;
    }
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    const delay = Math.max(jittered(count), outcome.afterMs ?? 0);
    wakeups.after(key, delay, priority);
  }

  /** Exponential back-off with equal jitter: half of it is certain, the other half random. */
  function jittered(count: number): number {
    const full = backoffMs(count, backoff.baseMs, backoff.maxMs);
    return full / 2 + (full / 2) * random();
  }

  function watchForStuck(key: string, startedAt: number): () => void {
    let callOff = timers.after(stuckAfterMs, ring);
    function ring(): void {
      report(() => hooks.onStuck?.(key, clock.monotonic() - startedAt));
      callOff = timers.after(stuckAfterMs, ring);
    }
    return () => callOff();
  }

  async function drain(timeoutMs: number): Promise<string[]> {
    draining = true;
    wakeups.stop();
    lines.clear();
    if (running.size === 0) return [];
    const { promise, resolve } = Promise.withResolvers<void>();
    whenIdle = resolve;
    const callOff = timers.after(timeoutMs, resolve);
    await promise;
    callOff();
    const unfinished = [...running.keys()];
    stop.abort(new Error("the work queue was stopped"));
    return unfinished;
  }

  return {
    add,
    addAfter(key, ms, { priority = 0 } = {}) {
      if (!draining) wakeups.after(key, ms, priority);
    },
    addAt(key, wallMs, { priority = 0 } = {}) {
      if (!draining) wakeups.at(key, wallMs, priority);
    },
    forget(key) {
      wakeups.drop(key);
      failures.delete(key);
      lines.drop(key);
      const locked = running.get(key);
      if (locked !== undefined) delete locked.dirty;
    },
    waiting: (atLeast) => lines.size(atLeast),
    stats() {
      const now = clock.monotonic();
      return {
        queued: lines.size(),
        scheduled: wakeups.size(),
        running: [...running].map(([key, { startedAt }]) => ({ key, runMs: now - startedAt })),
        failing: failures.size,
      };
    },
    upcoming: lines.upcoming,
    resume: startMore,
    drain,
    async [Symbol.asyncDispose]() {
      await drain(0);
    },
  };
}

/** A hook is a guest: whatever it throws must not stop the queue. */
function report(call: () => void): void {
  try {
    call();
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  }
}
