import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import { LockConfigError, NotAcquiredError, type NotAcquiredReason } from "../errors.ts";
import { checkEntry, checkHold, checkWait } from "../options.ts";
import { quorumOf } from "../quorum.ts";
import type { AcquireResult, LockObserver, NodeVerdict } from "../types.ts";
import type { Grant } from "../validity.ts";
import type { FencingSource } from "./fencing.ts";
import type { Alarms } from "./alarms.ts";
import { createHandle, type LockHandle } from "./handle.ts";
import { createHold, type HoldPort } from "./hold.ts";

export interface AcquireOptions {
  /** Milliseconds. Given explicitly, the lock ends with it unless `extend` is called; otherwise 30 s, renewed every 10 s. */
  readonly leaseMs?: number;
  /** Whether the lock is renewed by itself; default: when no lease was given. */
  readonly watchdog?: boolean;
  /** The watchdog renews no longer than this, milliseconds. */
  readonly maxHoldMs?: number;
  /** How long to try while somebody else has it or no majority answers; 0: one try. */
  readonly waitMs?: number;
  /** Between tries, milliseconds; each is between a half and one and a half of it, so that rivals do not meet again. */
  readonly retryIntervalMs?: number;
  /** Default: random. Must be unique to this acquisition. */
  readonly value?: string;
  /** Ends the waiting; has no effect on a lock that is held. */
  readonly signal?: AbortSignal;
  /** Gives the token of the handle, once the lock is held; for one key, within the lease. */
  readonly fencing?: FencingSource;
}

export interface Locker {
  /** @throws NotAcquiredError, LockConfigError */
  acquire(key: string, options?: AcquireOptions): Promise<LockHandle>;
  /** One try. @returns null when somebody else has it. @throws NotAcquiredError for any other reason */
  tryLock(key: string, options?: Omit<AcquireOptions, "waitMs">): Promise<LockHandle | null>;
  /** All of the keys or none of them, with one deadline; when one is lost, all are. @throws NotAcquiredError */
  multi(keys: readonly string[], options?: AcquireOptions): Promise<LockHandle>;
  /**
   * Runs `work` under the lock and releases it. `signal` aborts when the lock is lost.
   * @throws NotAcquiredError; what `work` throws; LockLostError when the lock was lost before `work` had ended
   */
  using<T>(
    keys: string | readonly string[],
    options: AcquireOptions,
    work: (signal: AbortSignal, lock: LockHandle) => Promise<T>,
  ): Promise<T>;
}

export interface LockerPort extends HoldPort {
  tryAcquire(key: string, value: string, leaseMs: number): Promise<AcquireResult>;
}

export const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_RETRY_MS = 100;

interface Failure {
  readonly key: string;
  readonly result: Exclude<AcquireResult, { outcome: "acquired" }>;
}

export function createLocker(
  port: LockerPort,
  clock: Clock,
  alarms: Alarms,
  random: () => number,
  observer: LockObserver,
): Locker {
  /** One try for all keys in one round trip; what was got of a failed one is given back. */
  async function tryAll(
    keys: readonly string[],
    value: string,
    leaseMs: number,
  ): Promise<readonly Grant[] | Failure> {
    const [only] = keys;
    if (only !== undefined && keys.length === 1) {
      const result = await port.tryAcquire(only, value, leaseMs);
      return result.outcome === "acquired" ? [result.grant] : { key: only, result };
    }
    const results = await Promise.all(keys.map((key) => port.tryAcquire(key, value, leaseMs)));
    const grants = results.flatMap((r) => (r.outcome === "acquired" ? [r.grant] : []));
    if (grants.length === keys.length && grants.every((grant) => grant.isValid())) return grants;
    for (const { key } of grants) void port.release(key, value, leaseMs);
    // No quorum outweighs held: it is what has to be mended.
    const failures = results.flatMap((result, i): Failure[] =>
      result.outcome === "acquired" ? [] : [{ key: keys[i] ?? "", result }],
    );
    const failure = failures.find(({ result }) => result.outcome === "noQuorum") ?? failures[0];
    // All acquired, and the first has run out before the last came: as good as too slow.
    return (
      failure ?? {
        key: keys[0] ?? "",
        result: { outcome: "noQuorum", reason: "tooSlow", perNode: results[0]?.perNode ?? [] },
      }
    );
  }

  async function lockAll(keys: readonly string[], options: AcquireOptions): Promise<LockHandle> {
    const leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    const waitMs = checkWait("waitMs", options.waitMs ?? 0);
    const retryMs = checkWait("retryIntervalMs", options.retryIntervalMs ?? DEFAULT_RETRY_MS);
    const maxHoldMs = options.maxHoldMs === undefined ? Infinity : checkHold(options.maxHoldMs);
    for (const key of keys) checkEntry(key, options.value ?? "random", leaseMs);
    if (keys.length === 0) throw new LockConfigError("BadKey", "keys", "is empty");
    if (keys.length > 1 && options.fencing !== undefined) throw new LockConfigError(...ONE_TOKEN);
    const { signal } = options;
    const began = clock.monotonic();
    let tries = 0;
    let failure: Failure | undefined;

    const giveUp = (reason: NotAcquiredReason): NotAcquiredError => {
      const waitedMs = clock.monotonic() - began;
      observer.waited?.({ outcome: reason, waitMs: waitedMs, tries });
      return new NotAcquiredError(reason, {
        key: failure?.key ?? keys[0] ?? "",
        holder: failure?.result.outcome === "held" ? failure.result.holder : null,
        perNode: failure?.result.perNode ?? [],
        waitedMs,
        tries,
        cause: reason === "aborted" ? signal?.reason : undefined,
      });
    };

    for (;;) {
      if (signal?.aborted === true) throw giveUp("aborted");
      tries += 1;
      // A new one per try: what is still taken back of the last try can do nothing to this one.
      const value = options.value ?? randomUUID();
      const attempt = tryAll(keys, value, leaseMs);
      const got = await (signal === undefined ? attempt : unlessAborted(attempt, signal));
      if (got === "aborted") {
        // Nobody waits for it any more; when it succeeds after all, it is given back.
        void attempt.then((late) => {
          if (isGranted(late)) for (const { key } of late) void port.release(key, value, leaseMs);
        });
        throw giveUp("aborted");
      }
      if (isGranted(got)) {
        observer.waited?.({ outcome: "acquired", waitMs: clock.monotonic() - began, tries });
        const watchdog = options.watchdog ?? options.leaseMs === undefined;
        const hold = createHold({
          port,
          clock,
          alarms,
          observer,
          grants: got,
          watchdog,
          maxHoldMs,
        });
        try {
          if (options.fencing === undefined) return createHandle(hold, undefined);
          const limit = AbortSignal.timeout(leaseMs);
          const end = signal === undefined ? limit : AbortSignal.any([signal, limit]);
          const token = await unlessAborted(options.fencing.next(keys[0] ?? ""), end);
          if (token === "aborted") throw limit.aborted ? noToken(leaseMs) : giveUp("aborted");
          // The source may have taken longer than the lease.
          hold.assertHeld();
          return createHandle(hold, token);
        } catch (error) {
          await hold.release();
          throw error;
        }
      }
      failure = got;
      refuseOtherType(failure);
      const left = waitMs - (clock.monotonic() - began);
      if (left <= 0) throw giveUp(reasonOf(failure.result));
      const pause = Math.min(left, retryMs * (0.5 + random()));
      await sleep(pause, undefined, { signal }).catch(() => undefined);
    }
  }

  function distinct(keys: readonly string[]): string[] {
    // One order for everybody, and each key once: a lock does not exclude itself.
    return [...new Set(keys)].toSorted();
  }

  return {
    acquire: (key, options = {}) => lockAll([key], options),
    multi: async (keys, options = {}) => lockAll(distinct(keys), options),
    async tryLock(key, options = {}) {
      try {
        return await lockAll([key], { ...options, waitMs: 0 });
      } catch (error) {
        if (error instanceof NotAcquiredError && error.reason === "held") return null;
        throw error;
      }
    },
    async using(keys, options, work) {
      const lock = await lockAll(typeof keys === "string" ? [keys] : distinct(keys), options);
      try {
        const result = await work(lock.signal, lock);
        lock.signal.throwIfAborted();
        return result;
      } finally {
        await lock.release();
      }
    },
  };
}

/** A token grows per key; one for several keys would be too small, or too large, for some of them. */
const ONE_TOKEN = [
  "BadOption",
  "fencing",
  "gives a token for one key, and several are locked; ask it for each key under the lock",
] as const;

const noToken = (leaseMs: number): Error =>
  new Error(`fencing: the source gave no token within the lease, ${leaseMs} ms`);

/** @throws LockConfigError when so many nodes bear something else under the key that waiting cannot help */
function refuseOtherType({ key, result: { perNode } }: Failure): void {
  const wrong = perNode.filter((verdict) => "reason" in verdict && verdict.reason === "WRONGTYPE");
  if (perNode.length - wrong.length >= quorumOf(perNode.length)) return;
  const text = `"${key}" is no lock but another kind of value on ${wrong.length} nodes: give locks a prefix of their own`;
  throw new LockConfigError("BadKey", "key", text, perNode);
}

function isGranted(got: readonly Grant[] | Failure): got is readonly Grant[] {
  return Array.isArray(got);
}

function reasonOf(result: Failure["result"]): NotAcquiredReason {
  if (result.outcome === "held") return "held";
  const count = (outcomes: readonly NodeVerdict["outcome"][]) =>
    result.perNode.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const voting = count(["yes", "held"]);
  const needed = quorumOf(result.perNode.length);
  return voting < needed && voting + count(["unsafe"]) >= needed ? "unsafe" : "noQuorum";
}

/** The result, or "aborted" as soon as the signal says so; leaves no listener behind. */
async function unlessAborted<T>(attempt: Promise<T>, signal: AbortSignal): Promise<T | "aborted"> {
  const aborted = Promise.withResolvers<"aborted">();
  const onAbort = () => aborted.resolve("aborted");
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([attempt, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
