/**
 * Who the replicas are: one Lease each, renewed by its process. Whether another one lives is judged by the time since
 * its Lease was last seen to change, on our own clock, never by comparing clocks.
 *
 * It also proves deaths. Only two things prove that a process can send nothing any more: its pod is gone, or a newer
 * process of the same replica has taken its Lease (the kubelet, or whatever supervises it, never runs two at once).
 * A Lease that has run out proves nothing: the process may be paused and go on later.
 */
import { COMPONENT_LABEL, PROCESS_ANNOTATION, REPLICA_COMPONENT } from "../api/names.ts";
import type { KubeObject, Lease } from "../api/types.ts";
import type { Clock, Timers } from "../clock.ts";
import { rankOf } from "../domain/election.ts";
import { hash32 } from "../domain/hash.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import { REQUEST_BOUND_MS } from "./attempts.ts";
import { microTime } from "./ledger-store.ts";
import type { Members } from "./ports.ts";

export interface MembershipOptions {
  client: KubeClient;
  leases: ResourceType<Lease>;
  pods: ResourceType<KubeObject>;
  clock: Clock;
  timers: Timers;
  namespace: string;
  /** Name of the replica: in a cluster the uid of its pod. */
  replica: string;
  /** Name of the replica's pod; without one only a newer process proves a death. */
  podName: string | undefined;
  /** `<replica>/<nonce>`. */
  process: string;
  leaseSeconds: number;
  /** Default REQUEST_BOUND_MS; shorter only in tests. */
  requestBoundMs?: number;
  /** How the renewal goes: undefined when well, else what is wrong. */
  onHealth(trouble: string | undefined): void;
  onChange(): void;
  /** Another process has taken the Lease that this one held: two run under one name, and this is the older. */
  onSuperseded(by: string): void;
}

export interface Membership extends Members, AsyncDisposable {
  /**
   * How many replicas go before this one for a key. One that could not renew its own Lease goes last: it would win
   * elections that it cannot turn into claims.
   */
  rank(key: string): number;
  observe(lease: Lease): void;
  observeDeleted(lease: Lease): void;
  /** Begins to renew; resolves after the first try, whatever came of it. */
  start(): Promise<void>;
  /** Gives the Lease up, so that the others need not wait for it to run out. */
  resign(): Promise<void>;
}

interface Seen {
  replica: string;
  process: string;
  podName: string | undefined;
  renewTime: string;
  /** Monotonic time of the last change of renewTime. */
  changedAt: number;
  durationMs: number;
}

/** How often a suspect's pod is asked for, ms. */
const POD_LOOK_MS = 10_000;
const RESIGN = { timeoutMs: 5_000, priority: "high" } as const;
const POD_ANNOTATION = "lockedcron.io/pod";

export function memberLeaseName(replica: string): string {
  return `lockedcron-replica-${hash32(replica).toString(16).padStart(8, "0")}`;
}

export function createMembership(o: MembershipOptions): Membership {
  const seen = new Map<string, Seen>();
  /** Processes proven dead, and since when (monotonic) we know. */
  const deadSince = new Map<string, number>();
  const podLooks = new Map<string, number>();
  const durationMs = o.leaseSeconds * 1000;
  const requestBoundMs = o.requestBoundMs ?? REQUEST_BOUND_MS;
  let stopped = false;
  let renewing: Promise<void> = Promise.resolve();
  /** This process has written the Lease at least once. */
  let held = false;
  let cancelRenewal: (() => void) | undefined;
  let current: Lease | undefined;

  function observe(lease: Lease): void {
    const process = lease.metadata.annotations?.[PROCESS_ANNOTATION];
    if (process === undefined) return;
    const name = lease.metadata.name;
    if (held && name === memberLeaseName(o.replica) && process !== o.process) {
      o.onSuperseded(process);
      return;
    }
    const old = seen.get(name);
    const renewTime = lease.spec?.renewTime ?? "";
    if (old !== undefined && old.process !== process) proveDead(old.process);
    const changed = old === undefined || old.renewTime !== renewTime || old.process !== process;
    seen.set(name, {
      replica: replicaOf(process),
      process,
      podName: lease.metadata.annotations?.[POD_ANNOTATION],
      renewTime,
      changedAt: changed ? o.clock.monotonic() : old.changedAt,
      durationMs: (lease.spec?.leaseDurationSeconds ?? o.leaseSeconds) * 1000,
    });
    if (old === undefined || old.process !== process) o.onChange();
  }

  function proveDead(process: string): void {
    if (process === o.process || deadSince.has(process)) return;
    deadSince.set(process, o.clock.monotonic());
    o.onChange();
  }

  function isFresh(member: Seen): boolean {
    return o.clock.monotonic() - member.changedAt < member.durationMs;
  }

  function stateOf(process: string): "alive" | "silent" | "dead" | "past" {
    if (process === o.process) return "alive";
    const since = deadSince.get(process);
    if (since !== undefined) {
      return o.clock.monotonic() - since > requestBoundMs ? "past" : "dead";
    }
    const replica = replicaOf(process);
    // ORDER: our own replica's name is ours alone, so an older process of it has ended before we began.
    if (replica === o.replica) {
      proveDead(process);
      return "dead";
    }
    const member = seen.get(memberLeaseName(replica));
    if (member !== undefined && member.process !== process) {
      proveDead(process);
      return "dead";
    }
    if (member !== undefined && isFresh(member)) return "alive";
    void lookForPod(process, member?.podName);
    return "silent";
  }

  /** Asked again and again while somebody waits for the process, so it looks only now and then. */
  async function lookForPod(process: string, podName: string | undefined): Promise<void> {
    if (podName === undefined || stopped) return;
    const last = podLooks.get(process) ?? -Infinity;
    if (o.clock.monotonic() - last < POD_LOOK_MS) return;
    podLooks.set(process, o.clock.monotonic());
    try {
      const pod = await o.client.get(o.pods, { namespace: o.namespace, name: podName });
      if (pod.metadata.uid !== replicaOf(process) || isOver(pod)) proveDead(process);
    } catch (error) {
      if (hasReason(error, "NotFound")) proveDead(process);
    }
  }

  function body(): Lease {
    const now = microTime(o.clock.now());
    const renewed = current?.metadata.annotations?.[PROCESS_ANNOTATION] === o.process;
    const metadata = {
      ...current?.metadata,
      name: memberLeaseName(o.replica),
      namespace: o.namespace,
      labels: { ...current?.metadata.labels, [COMPONENT_LABEL]: REPLICA_COMPONENT },
      annotations: {
        ...current?.metadata.annotations,
        [PROCESS_ANNOTATION]: o.process,
        ...(o.podName === undefined ? {} : { [POD_ANNOTATION]: o.podName }),
      },
    };
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: metadata as Lease["metadata"],
      spec: {
        ...current?.spec,
        holderIdentity: o.replica,
        leaseDurationSeconds: o.leaseSeconds,
        renewTime: now,
        acquireTime: renewed ? (current?.spec?.acquireTime ?? now) : now,
      },
    };
  }

  async function renew(): Promise<void> {
    const key = { namespace: o.namespace, name: memberLeaseName(o.replica) };
    const timeoutMs = durationMs / 3;
    try {
      current ??= await o.client.get(o.leases, key, { timeoutMs, priority: "high" });
      // ORDER: look before writing. To take the Lease back would declare the newer process dead.
      if (held && current.metadata.annotations?.[PROCESS_ANNOTATION] !== o.process) {
        observe(current);
        return;
      }
    } catch (error) {
      if (!hasReason(error, "NotFound")) throw error;
    }
    const call = { timeoutMs, priority: "high" as const };
    try {
      current =
        current === undefined
          ? await o.client.create(o.leases, body(), call)
          : await o.client.update(o.leases, body(), call);
    } catch (error) {
      current = undefined;
      throw error;
    }
    held = true;
    observe(current);
  }

  async function renewAndReport(): Promise<void> {
    try {
      await renew();
      o.onHealth(undefined);
    } catch (error) {
      o.onHealth(error instanceof Error ? error.message : String(error));
    }
    if (!stopped) {
      cancelRenewal = o.timers.after(durationMs / 3, () => {
        renewing = renewAndReport();
      });
    }
  }

  function live(): string[] {
    const replicas = new Set([o.replica]);
    for (const member of seen.values()) if (isFresh(member)) replicas.add(member.replica);
    return [...replicas];
  }

  return {
    observe,
    live,
    rank(key) {
      const own = seen.get(memberLeaseName(o.replica));
      const members = live();
      const connected = own?.process === o.process && isFresh(own);
      return connected ? rankOf(o.replica, members, key) : members.length;
    },
    observeDeleted(lease) {
      seen.delete(lease.metadata.name);
      o.onChange();
    },
    stateOf,
    start: () => (renewing = renewAndReport()),
    async resign() {
      stopped = true;
      cancelRenewal?.();
      // ORDER: a renewal under way would leave the Lease newer than the version that is taken away.
      await renewing;
      const key = { namespace: o.namespace, name: memberLeaseName(o.replica) };
      try {
        const { metadata } = current ?? (await o.client.get(o.leases, key, RESIGN));
        if (metadata.annotations?.[PROCESS_ANNOTATION] !== o.process) return;
        // As we have written it: by now it may be the Lease of a newer process.
        const { uid, resourceVersion } = metadata;
        await o.client.delete(o.leases, key, {
          ...RESIGN,
          preconditions: { uid, resourceVersion },
        });
      } catch {
        // It runs out by itself.
      }
    },
    async [Symbol.asyncDispose]() {
      stopped = true;
      cancelRenewal?.();
    },
  };
}

/** All its containers have ended and none is started again: an evicted pod stays like this for days. */
function isOver(pod: KubeObject & { status?: { phase?: string } }): boolean {
  return pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded";
}

export function replicaOf(process: string): string {
  const slash = process.lastIndexOf("/");
  return slash < 0 ? process : process.slice(0, slash);
}
