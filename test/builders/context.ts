import type { Context } from "../../src/controller/context.ts";
import { createElections, type Elections } from "../../src/controller/elections.ts";
import type { LedgerRecord, Locks } from "../../src/controller/ports.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { NOON } from "./objects.ts";
import { present } from "./snapshot.ts";

export function aRecord(ledger: Ledger, fields: Partial<LedgerRecord> = {}): LedgerRecord {
  return {
    namespace: "team",
    name: "report",
    uid: "lease-1",
    resourceVersion: "1",
    contents: present(ledger),
    heldInDeletion: false,
    token: ledger.token,
    ...fields,
  };
}

/** A call that a test does not expect. */
function unasked(name: string): () => never {
  return () => {
    throw new Error(`${name} was not to be called`);
  };
}

/** Each on its own, none ahead. */
export function electionsOver(locks: Locks): Elections {
  return createElections({
    locks,
    timers: { after: () => () => undefined },
    random: () => 0.5,
    leaseMs: () => 3_000,
    next: () => [],
  });
}

/**
 * A context in which time stands still at one second past noon and every call to the world fails the test, but for those
 * that it gives.
 */
export function aContext(parts: {
  [K in keyof Context]?: Context[K] extends object ? Partial<Context[K]> : Context[K];
}): Context {
  const calls = <T extends object>(name: string, given: Partial<T> | undefined): T =>
    new Proxy(given ?? {}, {
      get: (target, call) => Reflect.get(target, call) ?? unasked(`${name}.${String(call)}`),
    }) as T;
  const locks = calls("locks", parts.locks);
  return {
    process: parts.process ?? "me/1",
    replica: parts.replica ?? "me",
    clock: { now: () => NOON + 1_000, monotonic: () => 0, ...parts.clock },
    random: () => 0.5,
    ledgers: calls("ledgers", parts.ledgers),
    jobs: calls("jobs", parts.jobs),
    owners: calls("owners", parts.owners),
    elections: { ...electionsOver(locks), ...parts.elections },
    locks,
    mutexes: calls("mutexes", { freeAllOf: () => Promise.resolve(), ...parts.mutexes }),
    members: calls("members", { confirm: () => Promise.resolve(true), ...parts.members }),
    attempts: calls("attempts", parts.attempts),
    stuckLocks: { held: () => false, free: () => undefined, ...parts.stuckLocks },
    events: { event: () => undefined, ...parts.events },
    observe: {
      step: () => undefined,
      elected: () => undefined,
      launched: () => undefined,
      missed: () => undefined,
      claimConflict: () => undefined,
      takeover: () => undefined,
      jobCreate: () => undefined,
      mutexWait: () => undefined,
      mutexBusy: () => undefined,
      lockTakenOver: () => undefined,
      lockHeld: () => undefined,
      lockRenewal: () => undefined,
      ...parts.observe,
    },
    onStep: () => Promise.resolve(),
    lockPrefix: "lockedcron:c1",
    sharedMutexNamespaces: [],
    electionLeaseMs: () => 3_000,
  };
}
