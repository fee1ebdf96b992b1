/** The rights that the chart gives the operator, one by one; and a world in which every one of them is needed. */
import {
  LAUNCH_FINALIZER,
  LEDGER_ANNOTATION,
  COMPONENT_LABEL,
  LEDGER_COMPONENT,
  ledgerName,
  NAME_LABEL,
} from "../../src/api/names.ts";
import type { LockedCronJob } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { leaseFor } from "../../src/controller/member-lease.ts";
import { scheduleText } from "../../src/domain/decide/index.ts";
import { serializeLedger } from "../../src/domain/ledger-json.ts";
import { newLedger, type Run } from "../../src/domain/ledger.ts";
import type { KubeClient } from "../../src/kube/index.ts";
import type { Rule } from "./audit.ts";

export interface Right {
  /** In the namespaces that it serves, in its own, or on objects of the cluster. */
  readonly where: "served" | "own" | "cluster";
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  readonly names: readonly string[];
}

export function rightsOf(where: Right["where"], rules: readonly Rule[]): Right[] {
  return rules.flatMap(({ apiGroups, resources: plurals, verbs, resourceNames: names = [] }) =>
    apiGroups.flatMap((group) =>
      plurals.flatMap((resource) => verbs.map((verb) => ({ where, group, resource, verb, names }))),
    ),
  );
}

export function rulesFrom(rights: readonly Right[]): Rule[] {
  return rights.map(({ group, resource, verb, names }) => ({
    apiGroups: [group],
    resources: [resource],
    verbs: [verb],
    ...(names.length === 0 ? {} : { resourceNames: names }),
  }));
}

export const nameOf = ({ where, group, resource, verb }: Right): string =>
  `${where}: ${verb} ${group}/${resource}`;

const FAR = "0 0 1 1 *";
const GHOST = { process: "ghost/1", podName: "ghost-pod", leaseSeconds: 1 };

/** Its Jobs fail a second after they were created: no node is needed for them to end. */
function lockedCronJob(name: string, namespace: string, schedule: string): LockedCronJob {
  return {
    apiVersion: resources.lockedCronJobs.apiVersion,
    kind: resources.lockedCronJobs.kind,
    metadata: { name, namespace },
    spec: {
      schedule,
      concurrencyPolicy: "Allow",
      failedJobsHistoryLimit: 0,
      jobTemplate: {
        spec: {
          activeDeadlineSeconds: 1,
          template: {
            spec: { restartPolicy: "Never", containers: [{ name: "run", image: "busybox:1.36" }] },
          },
        },
      },
    },
  } as unknown as LockedCronJob;
}

/**
 * Two LockedCronJobs. One has ticks. The other one has a claim by a replica that is gone, for a Job whose name somebody else
 * has taken: the claim is looked into, taken over, refused, and told of again and again.
 */
export async function makeWorld(
  client: KubeClient,
  { served, own }: { readonly served: string; readonly own: string },
): Promise<void> {
  await client.create(resources.lockedCronJobs, lockedCronJob("busy", served, "@every 5s"));
  const haunted = await client.create(
    resources.lockedCronJobs,
    lockedCronJob("haunted", served, FAR),
  );
  const tick = Date.parse("2026-01-01T00:00:00Z");
  const run: Run = {
    tick,
    runId: `${haunted.metadata.uid}.${tick}`,
    jobName: "haunted-1",
    token: 1,
    lockKey: "lockedcron:haunted",
    lockValue: "of-a-ghost",
    attempts: [{ n: 1, by: GHOST.process, settled: false }],
    why: "Due",
  };
  const { uid } = haunted.metadata;
  const ledger = newLedger({ owner: uid, schedule: scheduleText(haunted), anchor: tick - 1 });
  const annotation = serializeLedger({ ...ledger, lastTick: Date.now(), token: 1, runs: [run] });
  await client.create(resources.leases, {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: ledgerName("haunted"),
      namespace: served,
      labels: { [COMPONENT_LABEL]: LEDGER_COMPONENT, [NAME_LABEL]: "haunted" },
      annotations: { [LEDGER_ANNOTATION]: annotation },
      finalizers: [LAUNCH_FINALIZER],
    },
    spec: { leaseTransitions: 1 },
  } as never);
  await client.create(resources.leases, leaseFor(GHOST, own, Date.now() - 60_000, undefined));
  await client.create(resources.jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: run.jobName, namespace: served },
    spec: {
      suspend: true,
      template: {
        spec: { restartPolicy: "Never", containers: [{ name: "x", image: "busybox:1.36" }] },
      },
    },
  } as never);
}

/** What only an uninstallation looks for: a Job whose launch was not complete. */
export async function makeHeldJob(client: KubeClient, namespace: string): Promise<void> {
  await client.create(resources.jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: "held-1",
      namespace,
      labels: { [NAME_LABEL]: "held" },
      finalizers: [LAUNCH_FINALIZER],
    },
    spec: {
      suspend: true,
      template: {
        spec: { restartPolicy: "Never", containers: [{ name: "x", image: "busybox:1.36" }] },
      },
    },
  } as never);
}
