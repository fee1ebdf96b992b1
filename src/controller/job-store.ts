/** The Jobs of our LockedCronJobs: what the watch tells, and what this process has created or looked at since. */
import {
  KIND,
  LAUNCH_FINALIZER,
  LIVE_PODS,
  NAME_LABEL,
  keyOf,
  splitKey,
  type Key,
} from "../api/names.ts";
import type { Job, KubeObject } from "../api/types.ts";
import { viewOf, type JobView } from "../domain/job.ts";
import { hasReason, type KubeClient, type ResourceType } from "../kube/index.ts";
import { createGone } from "./gone.ts";
import type { Jobs } from "./ports.ts";
import { isNewer } from "./versions.ts";

export interface JobStore extends Jobs {
  observe(job: Job): void;
  observeDeleted(job: Job): void;
  keys(): Iterable<Key>;
}

const NONE: readonly JobView[] = [];
/** What spares the API server work on each launch: no second decoding in search of unknown fields, no spec in the answer. */
const LEAN_POST = { priority: "high", fieldValidation: "Ignore", metadataOnly: true } as const;

/** The patch took the last finalizer off a Job that was being deleted, and with it the Job went. */
function wentWithIt({ metadata }: Job): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;
}

/** `<name>-<number>`, as jobName() makes it. */
function ownerOfJobName(jobName: string): string {
  return jobName.slice(0, jobName.lastIndexOf("-"));
}

export function createJobStore(o: {
  client: KubeClient;
  jobs: ResourceType<Job>;
  pods: ResourceType<KubeObject>;
  onChange(key: Key): void;
}): JobStore {
  const known = new Map<Key, Map<string, JobView>>();
  const gone = createGone();

  /** By its owner: a label is easily changed, and the Job would be looked for under one name and found under another. */
  const keyOfJob = ({ metadata }: Job): Key | undefined => {
    const owner = metadata.ownerReferences?.find((r) => r.controller === true && r.kind === KIND);
    const name = owner?.name ?? metadata.labels?.[NAME_LABEL];
    return name === undefined ? undefined : keyOf(metadata.namespace, name);
  };

  function learn(job: Job): { view: JobView; key: Key | undefined } {
    const view = viewOf(job);
    const key = keyOfJob(job);
    // Without its label it would stay for ever as it is now: no watch tells more of it.
    if (key === undefined || !view.labelled || gone.has(view.uid)) return { view, key };
    let jobs = known.get(key);
    if (jobs === undefined) known.set(key, (jobs = new Map()));
    const old = jobs.get(view.name);
    if (old === undefined || isNewer(view.resourceVersion, old.resourceVersion)) {
      jobs.set(view.name, view);
    }
    return { view, key };
  }

  function unlearn(key: Key, name: string): void {
    const jobs = known.get(key);
    jobs?.delete(name);
    if (jobs?.size === 0) known.delete(key);
  }

  async function anyLive(namespace: string, labelSelector: string): Promise<boolean> {
    const { items } = await o.client.list(o.pods, {
      namespace,
      labelSelector,
      fieldSelector: LIVE_PODS,
      metadataOnly: true,
    });
    return items.length > 0;
  }

  return {
    cached(key) {
      const jobs = known.get(key);
      return jobs === undefined ? NONE : [...jobs.values()];
    },
    keys: () => known.keys(),
    observe(job) {
      gone.back(job.metadata.uid);
      const { key } = learn(job);
      if (key !== undefined) o.onChange(key);
    },
    observeDeleted(job) {
      const key = keyOfJob(job);
      if (key === undefined) return;
      gone.add(job.metadata.uid);
      if (known.get(key)?.get(job.metadata.name)?.uid === job.metadata.uid) {
        unlearn(key, job.metadata.name);
      }
      o.onChange(key);
    },
    async read(namespace, name) {
      try {
        return learn(await o.client.get(o.jobs, { namespace, name })).view;
      } catch (error) {
        if (!hasReason(error, "NotFound")) throw error;
        unlearn(keyOf(namespace, ownerOfJobName(name)), name);
        return undefined;
      }
    },
    async list(key) {
      const { namespace, name } = splitKey(key);
      const { items } = await o.client.list(o.jobs, {
        namespace,
        labelSelector: `${NAME_LABEL}=${name}`,
      });
      return items.map((job) => learn(job).view);
    },
    async create(job) {
      // Its spec is the template's, which the LockedCronJob's own admission has seen, and none of it is kept here.
      return learn(await o.client.create(o.jobs, job as Job, LEAN_POST)).view;
    },
    async dropFinalizer(job) {
      // A strategic merge patch takes one value off the list, whatever else others have put on it; the uid makes sure
      // that it is still the same Job.
      const body = {
        metadata: { uid: job.uid, "$deleteFromPrimitiveList/finalizers": [LAUNCH_FINALIZER] },
      };
      try {
        const patched = await o.client.patch(
          o.jobs,
          { namespace: job.namespace, name: job.name },
          { type: "strategic", body },
        );
        const { key, view } = learn(patched);
        // ORDER: forgotten at once. The watch may have told of its end before this answer came, and tells nothing more: kept,
        // it would count as a Job that runs for ever.
        if (key !== undefined && wentWithIt(patched)) unlearn(key, view.name);
      } catch (error) {
        if (!hasReason(error, "NotFound", "Conflict")) throw error;
        // Gone, or gone and made anew by somebody else: the cache learns what is there now.
        await this.read(job.namespace, job.name);
      }
    },
    async putLabel(job, name) {
      const body = { metadata: { uid: job.uid, labels: { [NAME_LABEL]: name } } };
      const key = { namespace: job.namespace, name: job.name };
      try {
        learn(await o.client.patch(o.jobs, key, { type: "strategic", body }));
      } catch (error) {
        if (!hasReason(error, "NotFound", "Conflict")) throw error;
        await this.read(job.namespace, job.name);
      }
    },
    async delete(job, propagationPolicy = "Background") {
      try {
        await o.client.delete(
          o.jobs,
          { namespace: job.namespace, name: job.name },
          { preconditions: { uid: job.uid }, propagationPolicy },
        );
      } catch (error) {
        if (!hasReason(error, "NotFound", "Conflict")) throw error;
        await this.read(job.namespace, job.name);
        return;
      }
      // It may take the garbage collector a while; until the watch says so it counts as on its way out.
      const jobs = known.get(keyOf(job.namespace, ownerOfJobName(job.name)));
      const view = jobs?.get(job.name);
      if (view?.uid === job.uid) jobs?.set(job.name, { ...view, deleting: true });
    },
    async suspend({ namespace, name, uid }) {
      const body = { metadata: { uid }, spec: { suspend: true } };
      try {
        await o.client.patch(o.jobs, { namespace, name }, { type: "merge", body });
      } catch (error) {
        if (!hasReason(error, "NotFound", "Conflict")) throw error;
      }
    },
    hasLivePods: (namespace, jobUid) =>
      anyLive(namespace, `batch.kubernetes.io/controller-uid=${jobUid}`),
    hasLivePodsNamed: (namespace, jobName) =>
      anyLive(namespace, `batch.kubernetes.io/job-name=${jobName}`),
  };
}
