/**
 * This process's own membership Lease, and with it its licence to send: before each POST it makes sure that the Lease was
 * its own a moment ago. Whoever takes the Lease away (membership.ts) thus knows that soon after nothing more can be sent,
 * be the process paused, cut off, or one of two that run under one name.
 */
import { createHash } from "node:crypto";
import { COMPONENT_LABEL, PROCESS_ANNOTATION, REPLICA_COMPONENT } from "../api/names.ts";
import type { Lease } from "../api/types.ts";
import type { Clock, Timers } from "../clock.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import { microTime } from "./ledger-store.ts";
import { isNewer } from "./versions.ts";

export interface MemberLeaseOptions {
  client: KubeClient;
  leases: ResourceType<Lease>;
  clock: Clock;
  timers: Timers;
  namespace: string;
  /** Name of the replica: in a cluster the uid of its pod. */
  replica: string;
  /** Name of the replica's pod. */
  podName: string | undefined;
  /** `<replica>/<nonce>`. */
  process: string;
  leaseSeconds: number;
  /** How long after a renewal was sent the Lease counts as our own without another look, ms. */
  trustMs: number;
  /** How the renewal goes: undefined when well, else what is wrong. */
  onHealth(trouble: string | undefined): void;
  /** Something else that could not be done; it is tried again, or the others do without. */
  onTrouble(what: string, error: unknown): void;
  onRenewed(lease: Lease): void;
  /** The Lease that this process held names another one: for good, since it is never taken back. */
  onTaken(by: string): void;
}

export interface MemberLease extends AsyncDisposable {
  /** Begins to renew; resolves after the first try, whatever came of it. */
  start(): Promise<void>;
  /** This process has held the Lease at least once. */
  held(): boolean;
  /** True when the Lease was ours within the last `trustMs`; renews it first when the last time is longer ago. */
  confirm(): Promise<boolean>;
  /** What the watch tells of it. */
  observe(lease: Lease): void;
  observeDeleted(lease: Lease): void;
  /** Gives the Lease up, so that the others need not wait for it to run out. */
  resign(): Promise<void>;
}

/**
 * A Lease that is gone was deleted by hand and is made anew at once, so that what it proves is not lost; unless its process
 * was silent for so long that the others may have collected it after they had taken it away, ms.
 */
export const GONE_FOR_GOOD_MS = 1_800_000;
const RESIGN = { timeoutMs: 5_000, priority: "high" } as const;
const POD_ANNOTATION = "lockedcron.io/pod";
const FENCED = "fenced-";

/** 128 bits of SHA-256: names of replicas may be longer than those of Leases. */
export function memberLeaseName(replica: string): string {
  return `lockedcron-replica-${createHash("sha256").update(replica).digest("hex").slice(0, 32)}`;
}

export function replicaOf(process: string): string {
  const slash = process.lastIndexOf("/");
  return slash < 0 ? process : process.slice(0, slash);
}

export function processOf(lease: Lease): string | undefined {
  return lease.metadata.annotations?.[PROCESS_ANNOTATION];
}

export function podOf(lease: Lease): string | undefined {
  return lease.metadata.annotations?.[POD_ANNOTATION];
}

/** What stands in the place of a process whose Lease was taken away. */
export function fenceOf(process: string, by: string): string {
  return `${replicaOf(process)}/${FENCED}by-${by.slice(by.lastIndexOf("/") + 1)}`;
}

export function isFence(process: string): boolean {
  return process.slice(process.lastIndexOf("/") + 1).startsWith(FENCED);
}

export interface Holder {
  process: string;
  podName: string | undefined;
  leaseSeconds: number;
}

/** The Lease of a replica with this process in it, on top of the version that was read. */
export function leaseFor(
  holder: Holder,
  namespace: string,
  nowMs: number,
  current: Lease | undefined,
): Lease {
  const now = microTime(nowMs);
  const replica = replicaOf(holder.process);
  const renewed = current !== undefined && processOf(current) === holder.process;
  const metadata = {
    ...current?.metadata,
    name: memberLeaseName(replica),
    namespace,
    labels: { ...current?.metadata.labels, [COMPONENT_LABEL]: REPLICA_COMPONENT },
    annotations: {
      ...current?.metadata.annotations,
      [PROCESS_ANNOTATION]: holder.process,
      ...(holder.podName === undefined ? {} : { [POD_ANNOTATION]: holder.podName }),
    },
  };
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: metadata as Lease["metadata"],
    spec: {
      ...current?.spec,
      holderIdentity: replica,
      leaseDurationSeconds: holder.leaseSeconds,
      renewTime: now,
      acquireTime: renewed ? (current?.spec?.acquireTime ?? now) : now,
    },
  };
}

export function createMemberLease(o: MemberLeaseOptions): MemberLease {
  const name = memberLeaseName(o.replica);
  const key = { namespace: o.namespace, name };
  const durationMs = o.leaseSeconds * 1000;
  let stopped = false;
  let taken = false;
  let current: Lease | undefined;
  let confirmed: { monotonic: number; wall: number; version: string } | undefined;
  let inFlight: Promise<void> | undefined;
  let round: Promise<void> = Promise.resolve();
  let callOff: (() => void) | undefined;

  /** By both clocks: a machine that was suspended has stopped its monotonic one. */
  function ageMs(): number {
    if (confirmed === undefined) return Infinity;
    const { monotonic, wall } = confirmed;
    return Math.max(o.clock.monotonic() - monotonic, o.clock.now() - wall);
  }

  const isConfirmed = (): boolean => !taken && ageMs() < o.trustMs;

  function take(by: string): void {
    if (taken) return;
    taken = true;
    o.onTaken(by);
  }

  /** @throws Error when the Lease is not this replica's to take */
  function judge(lease: Lease): void {
    const process = processOf(lease);
    if (process === o.process) return;
    if (confirmed !== undefined) {
      // ORDER: looked at before writing. To take the Lease back would declare the newer process dead. One that names nobody
      // was edited by hand.
      if (process !== undefined) take(process);
      return;
    }
    const holder = process === undefined ? lease.spec?.holderIdentity : replicaOf(process);
    if (holder === undefined || holder === null || holder === o.replica) return;
    throw new Error(
      `Lease ${o.namespace}/${name} is replica ${holder}'s, not ${o.replica}'s: delete it, or choose another --replica`,
    );
  }

  async function renew(): Promise<void> {
    const call = { timeoutMs: durationMs / 3, priority: "high" as const };
    try {
      current ??= await o.client.get(o.leases, key, call);
      judge(current);
    } catch (error) {
      if (!hasReason(error, "NotFound")) throw error;
      if (confirmed !== undefined && ageMs() > GONE_FOR_GOOD_MS) take("nobody (it was collected)");
    }
    if (taken || stopped) return;
    // ORDER: before it is sent. Whoever takes the Lease away does so after this renewal, hence after this instant.
    const at = { monotonic: o.clock.monotonic(), wall: o.clock.now() };
    const holder = { process: o.process, podName: o.podName, leaseSeconds: o.leaseSeconds };
    const body = leaseFor(holder, o.namespace, at.wall, current);
    try {
      current =
        current === undefined
          ? await o.client.create(o.leases, body, call)
          : await o.client.update(o.leases, body, call);
    } catch (error) {
      current = undefined;
      throw error;
    }
    confirmed = { ...at, version: current.metadata.resourceVersion };
    o.onRenewed(current);
  }

  function renewOnce(): Promise<void> {
    inFlight ??= renew().finally(() => (inFlight = undefined));
    return inFlight;
  }

  async function renewAndReport(): Promise<void> {
    callOff?.();
    try {
      await renewOnce();
      if (!taken) o.onHealth(undefined);
    } catch (error) {
      o.onHealth(error instanceof Error ? error.message : String(error));
    }
    if (stopped || taken) return;
    callOff = o.timers.after(durationMs / 3, () => {
      round = renewAndReport();
    });
  }

  return {
    start: () => (round = renewAndReport()),
    held: () => confirmed !== undefined,
    async confirm() {
      if (isConfirmed()) return true;
      await renewOnce().catch(() => undefined);
      // Once more: the version that we knew may have been changed, by hand say, without having been taken from us.
      if (!isConfirmed()) await renewOnce().catch(() => undefined);
      return isConfirmed();
    },
    observe(lease) {
      // Older than what we have written, it tells of the process before us: the watch is behind.
      if (confirmed === undefined || isNewer(confirmed.version, lease.metadata.resourceVersion))
        return;
      judge(lease);
    },
    observeDeleted(lease) {
      if (current?.metadata.uid !== lease.metadata.uid || stopped || taken) return;
      current = undefined;
      round = renewAndReport();
    },
    async resign() {
      stopped = true;
      callOff?.();
      // ORDER: a renewal under way would leave the Lease newer than the version that is taken away.
      await round;
      await inFlight?.catch(() => undefined);
      try {
        const lease = current ?? (await o.client.get(o.leases, key, RESIGN));
        if (processOf(lease) !== o.process) return;
        // As we have written it: by now it may be the Lease of a newer process.
        const { uid, resourceVersion } = lease.metadata;
        await o.client.delete(o.leases, key, {
          ...RESIGN,
          preconditions: { uid, resourceVersion },
        });
      } catch (error) {
        // It runs out by itself.
        if (!hasReason(error, "NotFound", "Conflict")) {
          o.onTrouble("its own Lease was not given up: it runs out instead", error);
        }
      }
    },
    async [Symbol.asyncDispose]() {
      stopped = true;
      callOff?.();
    },
  };
}
