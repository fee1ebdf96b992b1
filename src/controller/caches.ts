/**
 * The watches: LockedCronJobs, their Jobs, live pods and ledgers, the fences of mutexes, and the replicas' Leases. Each namespace that is watched has its
 * own, so that Roles suffice; without a list of namespaces there is one of each for all.
 */
import {
  API_VERSION,
  COMPONENT_LABEL,
  KIND,
  LEDGER_COMPONENT,
  LIVE_PODS,
  MUTEX_COMPONENT,
  NAME_LABEL,
  PLURAL,
  REPLICA_COMPONENT,
  keyOf,
  type Key,
} from "../api/names.ts";
import type { Job, KubeObject, Lease, LockedCronJob } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import {
  createReflector,
  hasReason,
  resourceType,
  type KubeClient,
  type Reflector,
  type ReflectorHealth,
  type ResourceType,
  type Selection,
} from "../kube/index.ts";
import type { Owners } from "./ports.ts";

export const resources = {
  lockedCronJobs: resourceType<LockedCronJob>(API_VERSION, KIND, PLURAL),
  jobs: resourceType<Job>("batch/v1", "Job", "jobs"),
  leases: resourceType<Lease>("coordination.k8s.io/v1", "Lease", "leases"),
  pods: resourceType<KubeObject>("v1", "Pod", "pods"),
};

const STALE_MS = 5_000;

export interface Handlers<T> {
  changed(object: T): void;
  deleted(object: T): void;
}

export interface CachesOptions {
  client: KubeClient;
  clock: Clock;
  /** Empty: all namespaces. */
  watchNamespaces: readonly string[];
  /** Namespaces whose mutexes may be used from any other: their fences are watched, too. */
  sharedMutexNamespaces: readonly string[];
  /** The operator's own: where the replicas' Leases are. */
  namespace: string;
  owners: { changed(key: Key): void; deleted(key: Key): void };
  jobs: Handlers<Job>;
  ledgers: Handlers<Lease>;
  mutexes: Handlers<Lease>;
  replicas: Handlers<Lease>;
  /** A pod of this LockedCronJob is terminal or gone. Only a reason to look: a run ends on a live list alone. */
  podGone(key: Key): void;
  /** `watch` tells them apart: several may be of one resource. */
  onHealth(health: ReflectorHealth, watch: string): void;
}

export interface Caches extends AsyncDisposable {
  readonly owners: Owners & { size(): number; keys(): Iterable<Key> };
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
  /** A watch is not open, and has not been for longer than it takes to open it again. */
  isStale(): boolean;
}

export function createCaches(o: CachesOptions): Caches {
  const namespaces: (string | undefined)[] =
    o.watchNamespaces.length === 0 ? [undefined] : [...new Set(o.watchNamespaces)];

  /** One reflector; `changed` is called for every object that is new or different. */
  function watch<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string | undefined,
    handlers: Handlers<T>,
    more: Pick<Selection, "labelSelector" | "fieldSelector" | "metadataOnly"> & {
      transform?: (object: T) => T;
    } = {},
  ): Reflector<T> {
    const id = [type.plural, namespace ?? "*", more.labelSelector ?? ""].join(" ");
    const onHealth = (health: ReflectorHealth): void => o.onHealth(health, id);
    const reflector = createReflector<T>({
      client: o.client,
      type,
      clock: o.clock,
      onTrouble: onHealth,
      onRecovered: onHealth,
      ...(namespace === undefined ? {} : { namespace }),
      ...more,
    });
    reflector.store.subscribe({
      added: handlers.changed,
      updated: handlers.changed,
      deleted: handlers.deleted,
    });
    return reflector;
  }

  const keyFor = ({ metadata }: KubeObject): Key => keyOf(metadata.namespace, metadata.name);
  const owners = namespaces.map((ns) =>
    watch(resources.lockedCronJobs, ns, {
      changed: (object) => o.owners.changed(keyFor(object)),
      deleted: (object) => o.owners.deleted(keyFor(object)),
    }),
  );
  const others = [
    ...namespaces.map((ns) =>
      watch(resources.jobs, ns, o.jobs, { labelSelector: NAME_LABEL, transform: withoutSpec }),
    ),
    ...namespaces.map((ns) =>
      watch(resources.leases, ns, byComponent(o), {
        labelSelector: `${COMPONENT_LABEL} in (${LEDGER_COMPONENT},${MUTEX_COMPONENT})`,
      }),
    ),
    ...(o.watchNamespaces.length === 0
      ? []
      : o.sharedMutexNamespaces.filter((ns) => !o.watchNamespaces.includes(ns))
    ).map((ns) =>
      watch(resources.leases, ns, o.mutexes, {
        labelSelector: `${COMPONENT_LABEL}=${MUTEX_COMPONENT}`,
      }),
    ),
    // The server leaves out what is terminal, and sends no more than metadata: a pod that ends is one that goes.
    ...namespaces.map((ns) =>
      watch(resources.pods, ns, podHandlers(o), {
        labelSelector: NAME_LABEL,
        fieldSelector: LIVE_PODS,
        metadataOnly: true,
        transform: identityOf,
      }),
    ),
    watch(resources.leases, o.namespace, o.replicas, {
      labelSelector: `${COMPONENT_LABEL}=${REPLICA_COMPONENT}`,
    }),
  ];
  const all: Pick<
    Reflector<KubeObject>,
    "start" | "synced" | "health" | typeof Symbol.asyncDispose
  >[] = [...owners, ...others];

  return {
    owners: {
      cached(key) {
        for (const reflector of owners) {
          const object = reflector.store.get(key);
          if (object !== undefined) return object;
        }
        return undefined;
      },
      async read(key) {
        const slash = key.indexOf("/");
        const id = { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
        try {
          return await o.client.get(resources.lockedCronJobs, id);
        } catch (error) {
          if (hasReason(error, "NotFound")) return undefined;
          throw error;
        }
      },
      size: () => owners.reduce((sum, r) => sum + r.store.size, 0),
      *keys() {
        for (const reflector of owners) yield* reflector.store.keys();
      },
    },
    start() {
      for (const reflector of all) reflector.start();
    },
    async synced(signal) {
      await Promise.all(all.map((reflector) => reflector.synced(signal)));
    },
    isStale: () =>
      all.some((reflector) => {
        const { watching, lastContact } = reflector.health();
        return !watching && o.clock.monotonic() - lastContact > STALE_MS;
      }),
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((reflector) => reflector[Symbol.asyncDispose]()));
    },
  };
}

function podHandlers({ podGone }: Pick<CachesOptions, "podGone">): Handlers<KubeObject> {
  return {
    changed: () => undefined,
    deleted({ metadata }) {
      const name = metadata.labels?.[NAME_LABEL];
      if (name !== undefined) podGone(keyOf(metadata.namespace, name));
    },
  };
}

/** All that is kept of a pod. */
function identityOf({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels = {} } = metadata;
  const owner = labels[NAME_LABEL] ?? "";
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      labels: { [NAME_LABEL]: owner },
    },
  };
}

/** Ledgers and fences come by one watch. */
function byComponent(o: Pick<CachesOptions, "ledgers" | "mutexes">): Handlers<Lease> {
  const of = ({ metadata }: Lease): Handlers<Lease> =>
    metadata.labels?.[COMPONENT_LABEL] === MUTEX_COMPONENT ? o.mutexes : o.ledgers;
  return {
    changed: (lease) => of(lease).changed(lease),
    deleted: (lease) => of(lease).deleted(lease),
  };
}

/** Of a Job only metadata and status are looked at; its pod template would be most of the memory. */
function withoutSpec(job: Job): Job {
  const { spec: _, ...rest } = job;
  return rest;
}
