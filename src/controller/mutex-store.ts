/** The fences of mutexes, kept in Leases: what the watch tells, and what this process has written or read since. */
import {
  COMPONENT_LABEL,
  LAUNCH_FINALIZER,
  MUTEX_COMPONENT,
  keyOf,
  mutexLeaseName,
  nameOfMutexLease,
  splitKey,
} from "../api/names.ts";
import type { Lease } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import { createGone } from "./gone.ts";
import { microTime } from "./ledger-store.ts";
import type { MutexFences, MutexRecord } from "./ports.ts";
import { isNewer } from "./versions.ts";

interface Known extends MutexRecord {
  lease: Lease;
}

export interface MutexStore extends MutexFences {
  /** From the watch. */
  observe(lease: Lease): void;
  observeDeleted(lease: Lease): void;
  /** Fences that name a holder. */
  held(): Iterable<MutexRecord>;
}

export function createMutexStore(o: {
  client: KubeClient;
  leases: ResourceType<Lease>;
  clock: Clock;
  onChange(mutex: string): void;
}): MutexStore {
  const known = new Map<string, Known>();
  const gone = createGone();

  function learn(lease: Lease): Known | undefined {
    const name = nameOfMutexLease(lease.metadata.name);
    if (name === undefined) return undefined;
    const mutex = keyOf(lease.metadata.namespace, name);
    const { uid, resourceVersion } = lease.metadata;
    const old = known.get(mutex);
    if (old !== undefined && !isNewer(resourceVersion, old.resourceVersion)) return old;
    const record: Known = {
      mutex,
      uid,
      resourceVersion,
      holder: lease.spec?.holderIdentity ?? undefined,
      token: lease.spec?.leaseTransitions ?? 0,
      foreign: lease.metadata.labels?.[COMPONENT_LABEL] !== MUTEX_COMPONENT,
      lease,
    };
    if (!gone.has(uid)) known.set(mutex, record);
    return record;
  }

  function forget(mutex: string, uid?: string): void {
    if (uid === undefined || known.get(mutex)?.uid === uid) known.delete(mutex);
  }

  function own(record: Known | undefined): Known {
    if (record === undefined) throw new Error("the API server answered with another Lease");
    return record;
  }

  return {
    cached: (mutex) => known.get(mutex),
    *held() {
      for (const record of known.values()) if (record.holder !== undefined) yield record;
    },
    observe(lease) {
      gone.back(lease.metadata.uid);
      const record = learn(lease);
      if (record !== undefined) o.onChange(record.mutex);
    },
    observeDeleted(lease) {
      const name = nameOfMutexLease(lease.metadata.name);
      if (name === undefined) return;
      const mutex = keyOf(lease.metadata.namespace, name);
      gone.add(lease.metadata.uid);
      forget(mutex, lease.metadata.uid);
      o.onChange(mutex);
    },
    async read(mutex) {
      const { namespace, name } = splitKey(mutex);
      try {
        return learn(await o.client.get(o.leases, { namespace, name: mutexLeaseName(name) }));
      } catch (error) {
        if (!hasReason(error, "NotFound")) throw error;
        forget(mutex);
        return undefined;
      }
    },
    async write(mutex, record, { holder, token }) {
      const { namespace, name } = splitKey(mutex);
      const { lease } = (record ?? {}) as Partial<Known>;
      const metadata = {
        ...lease?.metadata,
        name: mutexLeaseName(name),
        namespace,
        labels: { ...lease?.metadata.labels, [COMPONENT_LABEL]: MUTEX_COMPONENT },
        finalizers: finalizersOf(lease, holder !== undefined),
      };
      const body = {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        ...lease,
        metadata,
        spec: {
          ...lease?.spec,
          holderIdentity: holder ?? null,
          leaseTransitions: token,
          renewTime: microTime(o.clock.now()),
        },
      } as Lease;
      const written =
        lease === undefined
          ? await o.client.create(o.leases, body)
          : await o.client.update(o.leases, body, { priority: "high" });
      const next = own(learn(written));
      const { deletionTimestamp, finalizers = [] } = written.metadata;
      // With the last finalizer off a fence that somebody has deleted goes, and the next holder makes a new one.
      if (deletionTimestamp !== undefined && finalizers.length === 0) forget(mutex, next.uid);
      return next;
    },
  };
}

/** A fence that is held may not vanish: whoever makes it anew would find the mutex free. */
function finalizersOf(lease: Lease | undefined, held: boolean): string[] {
  const others = (lease?.metadata.finalizers ?? []).filter((f) => f !== LAUNCH_FINALIZER);
  // An object that is being deleted takes no new finalizer.
  return held &&
    (lease?.metadata.deletionTimestamp === undefined ||
      others.length < (lease.metadata.finalizers ?? []).length)
    ? [...others, LAUNCH_FINALIZER]
    : others;
}
