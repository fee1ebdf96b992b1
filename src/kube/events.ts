import { type Clock, systemClock, systemTimers, type Timers } from "../clock.ts";
import { hasReason, isKubeError } from "./errors.ts";
import { createEventSeries, type EventType, type Series } from "./event-series.ts";
import { coreEvents, type KubeObject } from "./resources.ts";
import type { KubeClient } from "./verbs.ts";

/**
 * Events as `kubectl describe` shows them: core/v1, with CronJob's fields. They are reports: written with low priority
 * in the background, merged where they repeat, and dropped when the server does not take them. Nothing waits for them.
 */
export interface EventRecorder extends AsyncDisposable {
  /** Never throws, never waits. `regarding` needs apiVersion and kind. The message is cut to 1,024 bytes. */
  event(regarding: KubeObject, type: EventType, reason: string, message: string): void;
  /** Waits until all is written or dropped, or `timeoutMs` have passed. */
  flush(timeoutMs: number): Promise<void>;
  stats(): EventStats;
}

export interface EventStats {
  queued: number;
  written: number;
  /** Counted into an event that was there already. */
  merged: number;
  dropped: number;
}

export interface EventRecorderOptions {
  client: Pick<KubeClient, "create" | "patch">;
  /** source.component */
  component: string;
  /** reportingInstance: which replica. */
  instance: string;
  clock?: Clock;
  timers?: Timers;
  /** Events waiting to be written; beyond it new ones are dropped. Default 1,000. */
  queueLimit?: number;
  onDropped?: (reason: string, message: string) => void;
  /** Something more urgent is going on: events wait, unless there are many of them already. */
  busy?: () => boolean;
}

/** What repeats is written at most this often. */
const REPEAT_INTERVAL_MS = 1000;
const MAX_TRIES = 3;
const RETRY_MS = 1000;
const CONCURRENCY = 4;
/** How often to look whether it is still busy. */
const BUSY_MS = 250;
const LOW = { priority: "low" } as const;

interface WriteState {
  /** The server has the event. */
  exists: boolean;
  /** Something is to be written. */
  dirty: boolean;
  /** Waits in line, for its time, or is being written: in one place only, or counts would be lost. */
  busy: boolean;
  lastWritten: number;
  tries: number;
}

type Entry = Series<WriteState>;

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, component, instance, queueLimit = 1000 } = options;
  const { clock = systemClock, timers = systemTimers } = options;
  const series = createEventSeries<WriteState>({
    component,
    instance,
    clock,
    newState: () => ({
      exists: false,
      dirty: false,
      busy: false,
      lastWritten: -Infinity,
      tries: 0,
    }),
  });
  const queue: Entry[] = [];
  const pauses = new Set<() => void>();
  const whenIdle = new Set<() => void>();
  let writing = 0;
  /** Set while it is busy: calls off the next look. */
  let waiting: (() => void) | undefined;
  let flushing = false;
  let closed = false;
  const stats = { written: 0, merged: 0, dropped: 0 };

  const queued = (): number => queue.length + pauses.size + writing;

  function event(regarding: KubeObject, type: EventType, reason: string, message: string): void {
    if (closed) return;
    try {
      const { series: entry, merged } = series.of({ regarding, type, reason, message });
      if (merged) stats.merged++;
      enqueue(entry);
    } catch (error) {
      drop(reason, String(error));
    }
  }

  function enqueue(entry: Entry): void {
    const { state, event } = entry;
    state.dirty = true;
    if (state.busy) return;
    if (queued() >= queueLimit) {
      drop(event.reason, "the queue of events is full");
      return;
    }
    schedule(entry, state.lastWritten + REPEAT_INTERVAL_MS - clock.monotonic());
  }

  function schedule(entry: Entry, wait: number): void {
    if (closed) return;
    entry.state.busy = true;
    if (wait <= 0) {
      queue.push(entry);
      // On a later turn: whoever records an event is in the middle of something more urgent.
      queueMicrotask(writeMore);
      return;
    }
    const callOff = timers.after(wait, () => {
      pauses.delete(callOff);
      queue.push(entry);
      writeMore();
    });
    pauses.add(callOff);
  }

  function canWait(): boolean {
    return !flushing && queue.length <= queueLimit / 2 && options.busy?.() === true;
  }

  function writeMore(): void {
    if (queue.length > 0 && canWait()) {
      waiting ??= timers.after(BUSY_MS, () => {
        waiting = undefined;
        writeMore();
      });
      return;
    }
    while (writing < CONCURRENCY) {
      const next = queue.shift();
      if (next === undefined) break;
      writing++;
      void write(next).finally(() => {
        writing--;
        writeMore();
      });
    }
    if (queued() === 0) for (const resolve of whenIdle) resolve();
  }

  async function write(entry: Entry): Promise<void> {
    const { state } = entry;
    state.dirty = false;
    state.lastWritten = clock.monotonic();
    let wait = REPEAT_INTERVAL_MS;
    try {
      await send(entry);
      state.exists = true;
      state.tries = 0;
      stats.written++;
    } catch (error) {
      state.tries++;
      state.dirty = isWorthRepeating(error) && state.tries < MAX_TRIES;
      if (state.dirty) wait = RETRY_MS * state.tries;
      else {
        state.tries = 0;
        drop(entry.event.reason, error instanceof Error ? error.message : String(error));
      }
    }
    state.busy = false;
    if (state.dirty) schedule(entry, wait);
  }

  async function send({ event, state }: Entry): Promise<void> {
    const { name = "", namespace } = event.metadata;
    const { count, lastTimestamp, message } = event;
    if (state.exists) {
      const body = { count, lastTimestamp, message };
      try {
        await client.patch(coreEvents, { namespace, name }, { type: "merge", body }, LOW);
        return;
      } catch (error) {
        // Events live for an hour; this one is gone.
        if (!hasReason(error, "NotFound")) throw error;
      }
    }
    try {
      await client.create(coreEvents, event, LOW);
    } catch (error) {
      // The answer of an earlier try was lost.
      if (!hasReason(error, "AlreadyExists")) throw error;
    }
  }

  function drop(reason: string, message: string): void {
    stats.dropped++;
    try {
      options.onDropped?.(reason, message);
    } catch {
      // Whoever counts drops cannot be told that counting failed.
    }
  }

  async function flush(timeoutMs: number): Promise<void> {
    if (queued() === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    whenIdle.add(resolve);
    flushing = true;
    writeMore();
    const callOff = timers.after(timeoutMs, resolve);
    await promise;
    callOff();
    whenIdle.delete(resolve);
    flushing = whenIdle.size > 0;
  }

  return {
    event,
    flush,
    stats: () => ({ queued: queued(), ...stats }),
    async [Symbol.asyncDispose]() {
      closed = true;
      waiting?.();
      for (const callOff of pauses) callOff();
      pauses.clear();
      queue.length = 0;
    },
  };
}

/** What the server refuses (a namespace that goes away, a missing role) it will refuse again. */
function isWorthRepeating(error: unknown): boolean {
  if (!isKubeError(error)) return false;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}
