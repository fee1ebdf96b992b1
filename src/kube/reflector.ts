import { type Clock, systemClock, systemTimers, type Timers } from "../clock.ts";
import { backoffMs } from "../domain/backoff.ts";
import { isExpired, isKubeError, KubeError } from "./errors.ts";
import type { KubeObject, ResourceType } from "./resources.ts";
import { createStore, type IndexFunction, type Store } from "./store.ts";
import type { KubeClient, Selection } from "./verbs.ts";
import { WATCH_SILENCE_MS, type WatchEvent } from "./watch.ts";

/**
 * Keeps a store like the server's objects of one resource: lists, watches from there, takes the watch up again where it
 * ended, lists anew when the server no longer knows that place (410). Whatever goes wrong is told and tried again, for
 * ever: a missing CRD, a missing role, a server that is away cost time, never a restart.
 */
export interface ReflectorHealth {
  resource: string;
  synced: boolean;
  /** A watch is open right now. */
  watching: boolean;
  /** Monotonic ms of the last answer, event or bookmark; -Infinity when there was none. */
  lastContact: number;
  /** Cleared by the next success. */
  lastError?: { reason: string; message: string; at: number; consecutive: number };
}

export interface ReflectorOptions<T extends KubeObject> extends Selection {
  client: Pick<KubeClient, "list" | "watch">;
  type: ResourceType<T>;
  /** Cuts an object to what is needed, before it is stored. Must keep name, namespace, uid and resourceVersion. */
  transform?: (object: T) => T;
  indexes?: Record<string, IndexFunction<T>>;
  pageSize?: number;
  clock?: Clock;
  timers?: Timers;
  random?: () => number;
  /** Each failure. What can be done again and again is done quietly: a watch that ends in good order is none. */
  onTrouble?: (health: ReflectorHealth) => void;
  /** The first success after failures. */
  onRecovered?: (health: ReflectorHealth) => void;
  onHandlerError?: (error: unknown) => void;
  silenceMs?: number;
}

export interface Reflector<T extends KubeObject> extends AsyncDisposable {
  readonly store: Store<T>;
  health(): ReflectorHealth;
  /** Resolves once the first list is complete; rejects when the signal aborts. */
  synced(signal?: AbortSignal): Promise<void>;
  start(): void;
}

/** Half of these seconds at least, so that the watches of all replicas do not end together. */
const WATCH_SECONDS = 600;
const CALL_TIMEOUT_MS = 10_000;
/** Per page. */
const LIST_TIMEOUT_MS = 15_000;
const BACKOFF = { baseMs: 200, maxMs: 5000 };
/** A watch that the server ends sooner, without an event, counts as a failure: else we would spin. */
const SHORT_WATCH_MS = 1000;
/** Only a watch that held for so long, or brought something, ends the back-off: opening one proves little. */
const LONG_WATCH_MS = 10_000;

export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, type, transform } = options;
  const { clock = systemClock, timers = systemTimers, random = Math.random } = options;
  const onHandlerError = options.onHandlerError ?? warn;
  const { store, writer } = createStore<T>({
    onHandlerError,
    ...(options.indexes === undefined ? {} : { indexes: options.indexes }),
  });
  const { namespace, labelSelector, fieldSelector, metadataOnly } = options;
  const selection = { namespace, labelSelector, fieldSelector, metadataOnly };
  const stop = new AbortController();
  const firstSync = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;
  /** Where the next watch begins; undefined: list first. */
  let resourceVersion: string | undefined;
  let watching = false;
  let lastContact = -Infinity;
  let lastError: ReflectorHealth["lastError"];
  let failures = 0;

  function health(): ReflectorHealth {
    return {
      resource: `${type.plural}.${type.apiVersion}`,
      synced: store.hasSynced(),
      watching,
      lastContact,
      ...(lastError === undefined ? {} : { lastError }),
    };
  }

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        if (resourceVersion === undefined) await list();
        else await watch(resourceVersion);
      } catch (error) {
        if (stop.signal.aborted) return;
        if (isExpired(error)) resourceVersion = undefined;
        await trouble(error);
      }
    }
  }

  async function list(): Promise<void> {
    const sentAt = clock.monotonic();
    const { signal } = stop;
    const { items, resourceVersion: version } = await client.list(type, {
      ...selection,
      signal,
      timeoutMs: LIST_TIMEOUT_MS,
      priority: "high",
      map: prepare,
      ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    });
    if (signal.aborted) return;
    contact();
    writer.replace(items, sentAt);
    resourceVersion = version;
    firstSync.resolve();
  }

  async function watch(from: string): Promise<void> {
    let events = 0;
    const startedAt = clock.monotonic();
    try {
      await client.watch(type, {
        ...selection,
        resourceVersion: from,
        timeoutSeconds: Math.round((WATCH_SECONDS / 2) * (1 + random())),
        signal: stop.signal,
        timeoutMs: CALL_TIMEOUT_MS,
        silenceMs: options.silenceMs ?? WATCH_SILENCE_MS,
        onOpen() {
          watching = true;
          contact();
        },
        onEvent(event) {
          events++;
          take(event);
        },
      });
    } finally {
      watching = false;
      const lasted = clock.monotonic() - startedAt;
      if (events > 0 || lasted > LONG_WATCH_MS) failures = 0;
    }
    if (events === 0 && clock.monotonic() - startedAt < SHORT_WATCH_MS) {
      throw new Error("the server ended the watch at once");
    }
  }

  function take({ type: change, object }: WatchEvent<T>): void {
    if (stop.signal.aborted) return;
    contact();
    if (change !== "BOOKMARK") {
      const prepared = prepare(object);
      if (change === "DELETED") writer.remove(prepared);
      else writer.put(prepared);
    }
    resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
    writer.fresh(lastContact);
  }

  function prepare(object: T): T {
    // By far the largest part of most objects, and of no use to a reader.
    delete object.metadata.managedFields;
    return transform === undefined ? object : transform(object);
  }

  function contact(): void {
    lastContact = clock.monotonic();
    if (lastError === undefined) return;
    lastError = undefined;
    guarded(() => options.onRecovered?.(health()));
  }

  async function trouble(error: unknown): Promise<void> {
    failures++;
    lastError = {
      reason: isKubeError(error) ? error.reason : "Error",
      message: error instanceof Error ? error.message : String(error),
      at: clock.monotonic(),
      consecutive: failures,
    };
    guarded(() => options.onTrouble?.(health()));
    const full = backoffMs(failures, BACKOFF.baseMs, BACKOFF.maxMs);
    const asked = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0;
    await pause(Math.max(full / 2 + (full / 2) * random(), asked));
  }

  async function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const callOff = timers.after(ms, resolve);
    const onAbort = (): void => resolve();
    stop.signal.addEventListener("abort", onAbort, { once: true });
    await promise;
    callOff();
    stop.signal.removeEventListener("abort", onAbort);
  }

  function guarded(call: () => void): void {
    try {
      call();
    } catch (error) {
      onHandlerError(error);
    }
  }

  return {
    store,
    health,
    async synced(signal) {
      if (signal === undefined) return await firstSync.promise;
      signal.throwIfAborted();
      const aborted = Promise.withResolvers<never>();
      const onAbort = (): void => aborted.reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        await Promise.race([firstSync.promise, aborted.promise]);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
    start() {
      running ??= run();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)));
}
