/**
 * The same spec as a CronJob and as a LockedCronJob, in two namespaces of one real cluster, and what became of each in words
 * that can be compared: what a LockedCronJob has on top (docs/cronjob-differences.md, "Jobs") is taken off.
 */
import { KIND, LAUNCH_FINALIZER } from "../../src/api/names.ts";
import type { Job, Lease, LockedCronJob } from "../../src/api/types.ts";
import { systemClock } from "../../src/clock.ts";
import { createLedgerStore } from "../../src/controller/ledger-store.ts";
import { scheduleText } from "../../src/domain/decide/index.ts";
import { newLedger } from "../../src/domain/ledger.ts";
import {
  coreEvents,
  namespaces,
  resourceType,
  type KubeClient,
  type KubeObject,
  type ResourceType,
} from "../../src/kube/index.ts";
import type { Case } from "./case.ts";
import { cronJobs, lockedCronJobs, manifest, objectOf, type Manifest } from "../crd/fixture.ts";

const jobs = resourceType<Job>("batch/v1", "Job", "jobs");
const leases = resourceType<Lease>("coordination.k8s.io/v1", "Lease", "leases");

export type Side = "native" | "ours";
export const SIDES: readonly Side[] = ["native", "ours"];
const TYPE: Readonly<Record<Side, ResourceType<Manifest>>> = {
  native: cronJobs,
  ours: lockedCronJobs,
};
export const NAMESPACE: Readonly<Record<Side, string>> = { native: "native", ours: "ours" };

interface Told extends KubeObject {
  involvedObject: { kind: string; name: string };
  type: string;
  reason: string;
  message: string;
}

export interface Outcome {
  /** In the order of their creation. */
  jobs: { name: string; [field: string]: unknown }[];
  /** `type reason message`, each once. */
  events: string[];
  status: {
    active: string[];
    hasSucceeded: boolean;
    lastScheduleTime: string | undefined;
  };
}

/** Everything of one side at one moment. */
export interface Seen {
  objects: readonly Manifest[];
  jobs: readonly Job[];
  events: readonly Told[];
}

export async function makeNamespaces(client: KubeClient): Promise<void> {
  for (const name of Object.values(NAMESPACE)) {
    const object = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
    await client.create(namespaces, object);
  }
}

/**
 * Both sides get the policy that is meant: the one default that differs on purpose is no matter of these tests.
 *
 * @returns when they were created, ms
 */
export async function createPair(
  client: KubeClient,
  { name, change, last, restored, sameSecond }: Case,
  { schedule, past }: { schedule: string; past: Date },
): Promise<number> {
  const object = manifest((m) => {
    m.metadata.name = name;
    m.spec.schedule = schedule;
    m.spec.concurrencyPolicy = "Allow";
    change(m, past);
  });
  const create = async (side: Side): Promise<string> => {
    const made = await client.create(TYPE[side], objectOf(TYPE[side], object, NAMESPACE[side]));
    return made.metadata.creationTimestamp ?? "";
  };
  for (;;) {
    const [native, ours] = await Promise.all([create("native"), create("ours")]);
    if (sameSecond === true && native !== ours) {
      for (const side of SIDES)
        await client.delete(TYPE[side], { namespace: NAMESPACE[side], name });
      continue;
    }
    if (last !== undefined) await tellPast(client, name, last(past), restored === true);
    return Date.parse(native ?? "");
  }
}

/** Ours is told by the ledger, as an operator has left it that was away since. */
async function tellPast(
  client: KubeClient,
  name: string,
  last: Date,
  restored: boolean,
): Promise<void> {
  const status = { lastScheduleTime: last.toISOString().replace(".000", "") };
  const told: readonly Side[] = restored ? SIDES : ["native"];
  for (const side of told) {
    const key = { namespace: NAMESPACE[side], name };
    const patch = { type: "merge", body: { status } } as const;
    await client.patch(TYPE[side], key, patch, { subresource: "status" });
  }
  if (restored) return;
  const owner = (await client.get(lockedCronJobs, {
    namespace: NAMESPACE.ours,
    name,
  })) as unknown as LockedCronJob;
  const ledgers = createLedgerStore({ client, leases, clock: systemClock, onChange: () => {} });
  const [schedule, tick] = [scheduleText(owner), last.getTime()];
  await ledgers.create(
    owner,
    newLedger({
      owner: owner.metadata.uid,
      schedule,
      anchor: tick,
      lastTick: tick,
      lastLaunched: tick,
    }),
  );
}

export async function see(client: KubeClient, side: Side): Promise<Seen> {
  const namespace = NAMESPACE[side];
  const [objects, created, events] = await Promise.all([
    client.list(TYPE[side], { namespace }),
    client.list(jobs, { namespace }),
    client.list(coreEvents, { namespace }),
  ]);
  return {
    objects: objects.items,
    jobs: created.items,
    events: events.items as unknown as Told[],
  };
}

/** @param isCompared of a text that names the Job of a tick: whether it is one of those that are compared */
export function outcomeOf(
  seen: Seen,
  name: string,
  isCompared: (text: string) => boolean,
): Outcome {
  const status = seen.objects.find((o) => o.metadata.name === name)?.status ?? {};
  const told = seen.events.filter(
    ({ involvedObject: of }) => of.name === name && (of.kind === KIND || of.kind === "CronJob"),
  );
  const lines = told.map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  return {
    jobs: seen.jobs
      .filter((job) => job.metadata.ownerReferences?.some((owner) => owner.name === name))
      .filter((job) => isCompared(job.metadata.name))
      .toSorted((a, b) => timeOf(a) - timeOf(b) || a.metadata.name.localeCompare(b.metadata.name))
      .map(shapeOf),
    events: [...new Set(lines.filter(isCompared))].toSorted(),
    status: {
      active: ((status.active ?? []) as { name: string }[])
        .map((job) => job.name)
        .filter(isCompared)
        .toSorted(),
      hasSucceeded: status.lastSuccessfulTime !== undefined,
      lastScheduleTime: status.lastScheduleTime,
    },
  };
}

function timeOf(job: Job): number {
  return Date.parse(job.metadata.creationTimestamp);
}

const isOurs = ([key]: [string, unknown]): boolean => !key.startsWith("lockedcron.io/");
const without = (map: Record<string, string> = {}): object =>
  Object.fromEntries(Object.entries(map).filter(isOurs));

/** What a Job is made of, less what differs between any two Jobs (uids, times) and what ours have on top. */
function shapeOf(job: Job): Outcome["jobs"][number] {
  const { name, labels, annotations, ownerReferences = [], finalizers = [] } = job.metadata;
  const spec = structuredClone(job.spec) as Manifest["spec"];
  delete spec.selector;
  const { metadata, spec: pod } = spec.template;
  for (const container of [...pod.containers, ...(pod.initContainers ?? [])]) {
    const own = (container.env ?? []).filter(
      (e: { name: string }) => !e.name.startsWith("LOCKEDCRON_"),
    );
    if (own.length > 0) container.env = own;
    else delete container.env;
  }
  return {
    name,
    labels: identifierless(without(labels)),
    annotations: without(annotations),
    finalizers: finalizers.filter((f) => f !== LAUNCH_FINALIZER),
    owners: ownerReferences.map(({ controller, blockOwnerDeletion }) => ({
      controller,
      blockOwnerDeletion,
    })),
    spec: {
      ...spec,
      template: {
        metadata: {
          labels: identifierless(without(metadata?.labels)),
          annotations: without(metadata?.annotations),
        },
        spec: pod,
      },
    },
    outcome: job.status?.conditions?.filter((c) => c.status === "True").map((c) => c.type),
  };
}

/** batch/v1 labels each Job and its pods with the Job's own uid. */
function identifierless(labels: object): object {
  return Object.fromEntries(
    Object.entries(labels).filter(([key]) => !key.endsWith("controller-uid")),
  );
}
