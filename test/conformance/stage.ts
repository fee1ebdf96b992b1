/** What a case can do to its pair while the two go their way. */
import type { Job } from "../../src/api/types.ts";
import { NAME_LABEL } from "../../src/api/names.ts";
import {
  coreEvents,
  isKubeError,
  resourceType,
  type KubeClient,
  type KubeObject,
  type ResourceType,
} from "../../src/kube/index.ts";
import { until } from "../cluster/proc.ts";
import { cronJobs, lockedCronJobs, type Manifest } from "../crd/fixture.ts";
import { NAMESPACE, SIDES, type Side } from "./pair.ts";

export const jobs = resourceType<Job>("batch/v1", "Job", "jobs");
const configMaps = resourceType<KubeObject & { data?: object }>("v1", "ConfigMap", "configmaps");

/** Long enough for the slowest machine; nothing is measured. */
const PATIENCE_MS = 60_000;

export interface Stage {
  readonly name: string;
  /** The top of an hour of six hours ago: a tick that nobody ran. */
  readonly past: Date;
  /** The name of the Job of a tick. */
  jobOf(tick: "first" | "second"): string;
  /** On both sides at once. */
  both(act: (side: Side) => Promise<void>): Promise<void>;
  /** Merges this into both objects. */
  patch(body: object): Promise<void>;
  patchOurs(body: object): Promise<void>;
  remove(propagationPolicy: "Background" | "Foreground" | "Orphan"): Promise<void>;
  object(side: Side): Promise<Manifest>;
  /** Makes a Job by hand, `<name>-<suffix>`: with this owner as its controller. */
  makeJob(
    suffix: string,
    owner: "pair" | "other" | "none",
    spec: object,
    labels?: Record<string, string>,
  ): Promise<void>;
  /** Deletes the Job of a tick, as soon as it is there, on both sides. */
  deleteJob(tick: "first" | "second"): Promise<void>;
  /** Waits for an event of this reason on both sides. */
  told(reason: string): Promise<void>;
  /** Waits until the operator has taken the newest edit in. */
  observed(): Promise<void>;
}

export function stageOf(
  client: KubeClient,
  name: string,
  { ticks, past }: { ticks: readonly [number, number]; past: Date },
): Stage {
  const typeOf = (side: Side): ResourceType<Manifest> =>
    side === "native" ? cronJobs : lockedCronJobs;
  const keyOf = (side: Side) => ({ namespace: NAMESPACE[side], name });
  const jobOf = (tick: "first" | "second"): string => `${name}-${ticks[tick === "first" ? 0 : 1]}`;
  const both = async (act: (side: Side) => Promise<void>): Promise<void> => {
    await Promise.all(SIDES.map(act));
  };
  const object = (side: Side): Promise<Manifest> => client.get(typeOf(side), keyOf(side));

  async function ownersOf(side: Side, owner: "pair" | "other" | "none"): Promise<object[]> {
    if (owner === "none") return [];
    const other = { ...keyOf(side), name: `${name}-other` };
    const { apiVersion, kind, metadata } =
      owner === "pair"
        ? await object(side)
        : await client.create(configMaps, {
            apiVersion: "v1",
            kind: "ConfigMap",
            metadata: other,
          });
    return [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }];
  }

  async function patch(side: Side, body: object): Promise<void> {
    await client.patch(typeOf(side), keyOf(side), { type: "merge", body });
  }

  return {
    name,
    past,
    jobOf,
    both,
    object,
    patch: (body) => both((side) => patch(side, body)),
    patchOurs: (body) => patch("ours", body),
    remove: (propagationPolicy) =>
      both((side) => client.delete(typeOf(side), keyOf(side), { propagationPolicy })),
    makeJob: (suffix, owner, spec, labels = { [NAME_LABEL]: name }) =>
      both(async (side) => {
        const { jobTemplate } = (await object(side)).spec;
        await client.create(jobs, {
          apiVersion: "batch/v1",
          kind: "Job",
          metadata: {
            name: `${name}-${suffix}`,
            namespace: NAMESPACE[side],
            // Our watch sees Jobs by it (docs/cronjob-differences.md).
            labels,
            ownerReferences: await ownersOf(side, owner),
          },
          spec: { ...jobTemplate.spec, ...spec },
        } as unknown as Job);
      }),
    deleteJob: (tick) =>
      both(async (side) => {
        const key = { namespace: NAMESPACE[side], name: jobOf(tick) };
        await until(`${side}/${key.name} is there`, PATIENCE_MS, () =>
          client.get(jobs, key).then(() => true, isAbsent),
        );
        await client.delete(jobs, key, { propagationPolicy: "Background" });
      }),
    told: (reason) =>
      both(async (side) => {
        await until(`${side}/${name} says ${reason}`, PATIENCE_MS, async () => {
          const fieldSelector = `involvedObject.name=${name},reason=${reason}`;
          const { items } = await client.list(coreEvents, {
            namespace: NAMESPACE[side],
            fieldSelector,
          });
          return items.length > 0;
        });
      }),
    async observed() {
      await until(`ours/${name} is observed`, PATIENCE_MS, async () => {
        const { metadata, status } = await object("ours");
        return status?.observedGeneration === metadata.generation;
      });
    },
  };
}

/** @throws anything but that it is not there */
export function isAbsent(error: unknown): false {
  if (isKubeError(error) && error.status === 404) return false;
  throw error;
}

/** The Jobs whose names begin with this one's, and how many owners each has. */
export async function jobsLeft(
  client: KubeClient,
  side: Side,
  name: string,
): Promise<{ name: string; owners: number }[]> {
  const { items } = await client.list(jobs, { namespace: NAMESPACE[side] });
  return items
    .map(({ metadata }) => ({
      name: metadata.name,
      owners: metadata.ownerReferences?.length ?? 0,
    }))
    .filter((job) => job.name.startsWith(`${name}-`))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}
