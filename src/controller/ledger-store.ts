/**
 * Ledgers kept in Leases. The newest version that this process knows of is the truth it decides on, be it from the
 * watch or from its own writes; the API server's compare-and-set makes up for every version it does not know of.
 */
import {
  API_VERSION,
  COMPONENT_LABEL,
  KIND,
  LAUNCH_FINALIZER,
  LEDGER_ANNOTATION,
  LEDGER_COMPONENT,
  NAME_LABEL,
  keyOf,
  ledgerName,
  nameOfLedger,
  splitKey,
  type Key,
} from "../api/names.ts";
import type { Lease, LockedCronJob, OwnerReference } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import type { LedgerState } from "../domain/decide/index.ts";
import { parseLedger, serializeLedger } from "../domain/ledger-json.ts";
import { mustStay, type Ledger } from "../domain/ledger.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import { createGone } from "./gone.ts";
import type { LedgerRecord, Ledgers } from "./ports.ts";
import { isNewer } from "./versions.ts";

/**
 * A list of one empty entry takes all of them off, and from then on the server keeps no account of who owns which field: work
 * on each write, for an object that nobody else writes
 * (https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields).
 */
const UNTRACKED = { managedFields: [{}] };
/** We have made all of it: no second decoding in search of unknown fields. */
const LEAN_PUT = { priority: "high", fieldValidation: "Ignore" } as const;
/** The Lease's leaseTransitions is an int32; the ledger itself goes on counting. */
const MAX_INT32 = 2 ** 31 - 1;

interface Known extends LedgerRecord {
  lease: Lease;
}

export interface LedgerStore extends Ledgers {
  /** From the watch. */
  observe(lease: Lease): void;
  observeDeleted(lease: Lease): void;
  keys(): Iterable<Key>;
  /** Keys of ledgers that have an open run. */
  withRuns(): Iterable<Key>;
  /** Keys of ledgers in which a run waits for this mutex. */
  waitingFor(mutex: string): Key[];
  /** Keys of runs with an attempt that is not settled, of a process for which this holds. */
  withAttemptsOf(isMeant: (process: string) => boolean): Key[];
}

export function createLedgerStore(o: {
  client: KubeClient;
  leases: ResourceType<Lease>;
  clock: Clock;
  onChange(key: Key): void;
  /** A ledger was deleted; this is the last that it said. */
  onGone?(key: Key, last: Ledger): void;
}): LedgerStore {
  const known = new Map<Key, Known>();
  const lasts = new Map<Key, { uid: string; ledger: Ledger }>();
  const withRuns = new Set<Key>();
  const gone = createGone();

  function learn(lease: Lease): Known | undefined {
    const name = nameOfLedger(lease.metadata.name);
    if (name === undefined) return undefined;
    const key = keyOf(lease.metadata.namespace, name);
    const old = known.get(key);
    if (old !== undefined && !isNewer(lease.metadata.resourceVersion, old.resourceVersion)) {
      return old;
    }
    const record: Known = {
      namespace: lease.metadata.namespace,
      name,
      uid: lease.metadata.uid,
      resourceVersion: lease.metadata.resourceVersion,
      contents: contentsOf(lease),
      heldInDeletion: isHeldInDeletion(lease),
      token: lease.spec?.leaseTransitions ?? 0,
      lease,
    };
    if (gone.has(record.uid)) return record;
    if (record.contents.state === "present") {
      lasts.set(key, { uid: record.uid, ledger: record.contents.ledger });
    }
    known.set(key, record);
    const open = record.contents.state === "present" && record.contents.ledger.runs.length > 0;
    if (open) withRuns.add(key);
    else withRuns.delete(key);
    return record;
  }

  function unlearn(key: Key, uid: string | undefined): void {
    if (uid !== undefined && known.get(key)?.uid !== uid) return;
    known.delete(key);
    withRuns.delete(key);
  }

  async function put(lease: Lease): Promise<Known | undefined> {
    const body = { ...lease, metadata: { ...lease.metadata, ...UNTRACKED } };
    const written = await o.client.update(o.leases, body, LEAN_PUT);
    const record = learn(written);
    // ORDER: forgotten before anything is decided on it; what is left is made anew from status and Jobs.
    if (record !== undefined && wentWithIt(written)) {
      unlearn(keyOf(record.namespace, record.name), written.metadata.uid);
    }
    return record;
  }

  return {
    cached: (key) => known.get(key),
    last: (key) => lasts.get(key),
    forget: (key) => void lasts.delete(key),
    keys: () => known.keys(),
    withRuns: () => withRuns,
    withAttemptsOf: (isMeant) =>
      [...withRuns].filter((key) => {
        const contents = known.get(key)?.contents;
        if (contents?.state !== "present") return false;
        const attempts = contents.ledger.runs.flatMap((run) => run.attempts);
        return attempts.some((a) => !a.settled && isMeant(a.by));
      }),
    waitingFor: (mutex) =>
      [...withRuns].filter((key) => {
        const contents = known.get(key)?.contents;
        if (contents?.state !== "present") return false;
        return contents.ledger.runs.some(
          (run) => run.waiting !== undefined && run.lock?.mutexes?.includes(mutex) === true,
        );
      }),
    observe(lease) {
      gone.back(lease.metadata.uid);
      const record = learn(lease);
      if (record !== undefined) o.onChange(keyOf(record.namespace, record.name));
    },
    observeDeleted(lease) {
      const name = nameOfLedger(lease.metadata.name);
      if (name === undefined) return;
      const key = keyOf(lease.metadata.namespace, name);
      gone.add(lease.metadata.uid);
      unlearn(key, lease.metadata.uid);
      const contents = contentsOf(lease);
      if (contents.state === "present") o.onGone?.(key, contents.ledger);
      o.onChange(key);
    },
    async read(key) {
      const { namespace, name } = splitKey(key);
      try {
        return learn(await o.client.get(o.leases, { namespace, name: ledgerName(name) }));
      } catch (error) {
        if (!hasReason(error, "NotFound")) throw error;
        unlearn(key, undefined);
        return undefined;
      }
    },
    async reserve(owner) {
      return own(learn(await o.client.create(o.leases, emptyLease(owner))));
    },
    async create(owner, ledger) {
      const body = withLedger(emptyLease(owner), ledger, o.clock.now());
      return own(learn(await o.client.create(o.leases, body)));
    },
    async write(record, ledger, owner) {
      const { lease } = record as Known;
      const metadata = {
        ...lease.metadata,
        // What our watches select by, should somebody have taken it off.
        labels: { ...lease.metadata.labels, ...labelsOf(record.name) },
        ...(owner === undefined ? {} : { ownerReferences: [referenceTo(owner)] }),
      };
      return own(await put(withLedger({ ...lease, metadata }, ledger, o.clock.now())));
    },
    async letGo(record) {
      const { lease } = record as Known;
      await put({ ...lease, metadata: { ...lease.metadata, finalizers: othersOf(lease) } });
    },
  };
}

function emptyLease(owner: LockedCronJob): Lease {
  const { namespace, name } = owner.metadata;
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: ledgerName(name),
      namespace,
      labels: labelsOf(name),
      ownerReferences: [referenceTo(owner)],
    },
    spec: {},
  };
  return lease as unknown as Lease;
}

/** The write took the last finalizer off a Lease that was being deleted, and with it the Lease went. */
function wentWithIt({ metadata }: Lease): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;
}

/** The API server has just answered with our own Lease. */
function own(record: LedgerRecord | undefined): LedgerRecord {
  if (record === undefined) throw new Error("the API server answered with another Lease");
  return record;
}

function contentsOf(lease: Lease): LedgerState {
  const parsed = parseLedger(lease.metadata.annotations?.[LEDGER_ANNOTATION]);
  if (parsed.ok) {
    const leaving = lease.metadata.deletionTimestamp !== undefined && !isHeld(lease);
    return {
      state: "present",
      ledger: parsed.ledger,
      ...(leaving ? { leaving: othersOf(lease) } : {}),
    };
  }
  return parsed.reason === "newer"
    ? { state: "newer", message: parsed.message }
    : { state: "orphan", why: parsed.reason, held: isHeld(lease) };
}

function isHeld({ metadata }: Lease): boolean {
  return metadata.finalizers?.includes(LAUNCH_FINALIZER) ?? false;
}

function othersOf({ metadata }: Lease): string[] {
  return (metadata.finalizers ?? []).filter((f) => f !== LAUNCH_FINALIZER);
}

function isHeldInDeletion(lease: Lease): boolean {
  return isHeld(lease) && lease.metadata.deletionTimestamp !== undefined;
}

/**
 * The Lease that carries this ledger. The finalizer keeps it while it alone knows of POSTs that may still arrive: a
 * ledger that is deleted earlier (by garbage collection, with its namespace, by hand) could let a tick run twice. Once it
 * has kept it from being deleted it stays on until the ledger is let go in so many words (letGo), for by then ticks may
 * have been launched of which nothing else tells.
 */
function withLedger(lease: Lease, ledger: Ledger, now: number): Lease {
  const others = othersOf(lease);
  const stays = mustStay(ledger) || isHeldInDeletion(lease);
  const newest = ledger.runs.at(-1);
  return {
    ...lease,
    metadata: {
      ...lease.metadata,
      annotations: { ...lease.metadata.annotations, [LEDGER_ANNOTATION]: serializeLedger(ledger) },
      finalizers: stays ? [...others, LAUNCH_FINALIZER] : others,
    },
    spec: {
      ...lease.spec,
      holderIdentity: newest === undefined ? null : newest.runId,
      leaseTransitions: Math.min(ledger.token, MAX_INT32),
      renewTime: microTime(now),
    },
  };
}

function labelsOf(name: string): Record<string, string> {
  return { [NAME_LABEL]: name, [COMPONENT_LABEL]: LEDGER_COMPONENT };
}

function referenceTo({ metadata }: LockedCronJob): OwnerReference {
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    name: metadata.name,
    uid: metadata.uid,
    controller: true,
  };
}

/** metav1.MicroTime: RFC 3339 with six digits. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
