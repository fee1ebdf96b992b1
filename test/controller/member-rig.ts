import { PROCESS_ANNOTATION } from "../../src/api/names.ts";
import type { KubeObject, Lease } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { memberLeaseName } from "../../src/controller/member-lease.ts";
import { createMembership, type Membership } from "../../src/controller/membership.ts";
import { aClient, conflict, notFound, rejected } from "../builders/client.ts";
import { manualTime, type ManualTime } from "./manual-time.ts";

export const LEASE_SECONDS = 15;
export const BOUND_MS = 1_000;

export interface Rig {
  members: Membership;
  time: ManualTime;
  /** Leases as the API server has them. */
  leases: Map<string, Lease>;
  /** What went to the API server, in order. */
  calls: string[];
  trouble: (string | undefined)[];
  superseded: string[];
  changes: () => number;
}

/** A replica `me` before a little API server that keeps Leases by resourceVersion. */
export function aMember(
  o: {
    process?: string;
    pods?: Record<string, KubeObject>;
    broken?: () => boolean;
    owes?: (replica: string) => boolean;
  } = {},
): Rig {
  const { process = "me/1", pods = {}, broken = () => false, owes = () => true } = o;
  const time = manualTime();
  const leases = new Map<string, Lease>();
  const calls: string[] = [];
  const trouble: (string | undefined)[] = [];
  const superseded: string[] = [];
  let changes = 0;
  let version = 0;
  const store = (lease: Lease): Lease => {
    const resourceVersion = String(++version);
    const stored = { ...lease, metadata: { ...lease.metadata, uid: "u", resourceVersion } };
    leases.set(lease.metadata.name, stored);
    return stored;
  };
  const call = <T>(verb: string, answer: () => T | Promise<never>) => {
    calls.push(verb);
    return broken() ? rejected(0, "ConnectionRefused") : Promise.resolve(answer());
  };
  const client = aClient({
    get: (type: { plural: string }, { name }: { name: string }) =>
      type.plural === "pods"
        ? call(`get pod ${name}`, () => pods[name] ?? notFound())
        : call("get", () => leases.get(name) ?? notFound()),
    create: (_: unknown, lease: Lease) => call("create", () => store(lease)),
    update: (_: unknown, lease: Lease) =>
      call("update", () =>
        leases.get(lease.metadata.name)?.metadata.resourceVersion === lease.metadata.resourceVersion
          ? store(lease)
          : conflict(),
      ),
    delete: (_: unknown, { name }: { name: string }) => call("delete", () => leases.delete(name)),
  });
  const members = createMembership({
    client,
    leases: resources.leases,
    pods: resources.pods,
    clock: time.clock,
    timers: time.timers,
    namespace: "system",
    replica: "me",
    podName: "pod-me",
    process,
    leaseSeconds: LEASE_SECONDS,
    requestBoundMs: BOUND_MS,
    onHealth: (said) => void trouble.push(said),
    onTrouble: (what) => void trouble.push(what),
    onChange: () => void changes++,
    onSuperseded: (by) => void superseded.push(by),
    owes,
  });
  return { members, time, leases, calls, trouble, superseded, changes: () => changes };
}

/** The Lease of another replica's process, renewed so many times. */
export function leaseOf(process: string, renewal = 0, podName?: string): Lease {
  const replica = process.slice(0, process.indexOf("/"));
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: memberLeaseName(replica),
      namespace: "system",
      uid: `lease-${replica}`,
      resourceVersion: "1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      annotations: {
        [PROCESS_ANNOTATION]: process,
        ...(podName === undefined ? {} : { "lockedcron.io/pod": podName }),
      },
    },
    spec: { leaseDurationSeconds: LEASE_SECONDS, renewTime: `renewal ${renewal}` },
  };
}

/** A Lease as it was at this resourceVersion. */
export function versionOf(lease: Lease, resourceVersion: string): Lease {
  return { ...lease, metadata: { ...lease.metadata, resourceVersion } };
}
