/** What has been seen of a namespace: every version of its pods, Jobs, ledgers and fences, from now on. */
import {
  LEDGER_ANNOTATION,
  ledgerName,
  NAME_LABEL,
  nameOfMutexLease,
} from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import { parseLedger } from "../../src/domain/ledger-json.ts";
import { isOver, type Run } from "../../src/domain/ledger.ts";
import type { KubeClient, ResourceType } from "../../src/kube/index.ts";
import { openStream } from "../chaos/stream.ts";

export interface Pod extends KubeObject {
  spec: { nodeName?: string };
  status?: {
    phase?: string;
    conditions?: { type: string; reason?: string }[];
    containerStatuses?: {
      containerID?: string;
      restartCount: number;
      state?: { running?: object };
      lastState?: { terminated?: { reason?: string } };
    }[];
  };
}

export interface SeenPod {
  name: string;
  job: string;
  /** As last seen. */
  object: Pod;
  /** resourceVersion at which it was first seen to run; at which it was terminal or gone. */
  ranAt?: number;
  goneAt?: number;
  /** When this was seen, wall clock ms. */
  goneSince?: number;
}

export interface SeenRun {
  name: string;
  run: Run;
  /** resourceVersion of the ledger that first had it; that first had it over or not at all. */
  begunAt: number;
  overAt?: number;
  /** When that was seen, wall clock ms. */
  overSince?: number;
}

export interface Seen extends AsyncDisposable {
  pods(name: string): SeenPod[];
  runs(name: string): SeenRun[];
  /** When a Job was seen to be terminal or gone, wall clock ms. */
  jobOver(job: string): number | undefined;
  /** Whom the fence of each mutex names now. */
  fences: ReadonlyMap<string, string | undefined>;
  /** resourceVersions before which a version may have been missed: the API server had forgotten it. */
  gaps(): number[];
}

const podType = resources.pods as unknown as ResourceType<Pod>;

export async function openSeen(client: KubeClient, namespace: string): Promise<Seen> {
  const pods = new Map<string, SeenPod>();
  const runs = new Map<string, SeenRun>();
  const jobsOver = new Map<string, number>();
  const fences = new Map<string, string | undefined>();
  const streams = [
    await openStream(client, podType, namespace, (change, pod) => {
      const { uid, labels = {}, resourceVersion } = pod.metadata;
      if (labels[NAME_LABEL] === undefined) return;
      const job = labels["batch.kubernetes.io/job-name"] ?? "";
      const seen = pods.get(uid) ?? { name: labels[NAME_LABEL], job, object: pod };
      seen.object = pod;
      const { phase } = pod.status ?? {};
      if (phase === "Running") seen.ranAt ??= Number(resourceVersion);
      const terminal = phase === "Succeeded" || phase === "Failed";
      if (change === "DELETED" || terminal) {
        seen.goneAt ??= Number(resourceVersion);
        seen.goneSince ??= Date.now();
      }
      pods.set(uid, seen);
    }),
    await openStream(client, resources.jobs, namespace, (change, { metadata, status }) => {
      const terminal = status?.conditions?.some(
        (c) => c.status === "True" && (c.type === "Complete" || c.type === "Failed"),
      );
      const over = change === "DELETED" || terminal === true;
      if (over && !jobsOver.has(metadata.name)) jobsOver.set(metadata.name, Date.now());
    }),
    await openStream(client, resources.leases, namespace, (_, lease) => {
      const mutex = nameOfMutexLease(lease.metadata.name);
      if (mutex !== undefined) fences.set(mutex, lease.spec?.holderIdentity ?? undefined);
      const parsed = parseLedger(lease.metadata.annotations?.[LEDGER_ANNOTATION]);
      if (!parsed.ok) return;
      const version = Number(lease.metadata.resourceVersion);
      const name = lease.metadata.name.slice(ledgerName("").length);
      const over = (seen: SeenRun): void => {
        seen.overAt ??= version;
        seen.overSince ??= Date.now();
      };
      for (const run of parsed.ledger.runs) {
        const seen = runs.get(run.lockValue) ?? { name, run, begunAt: version };
        seen.run = run;
        if (isOver(run)) over(seen);
        runs.set(run.lockValue, seen);
      }
      for (const seen of runs.values()) {
        const there = parsed.ledger.runs.some((run) => run.lockValue === seen.run.lockValue);
        if (seen.name === name && !there) over(seen);
      }
    }),
  ];
  return {
    pods: (name) => [...pods.values()].filter((pod) => pod.name === name),
    runs: (name) => [...runs.values()].filter((run) => run.name === name),
    jobOver: (job) => jobsOver.get(job),
    fences,
    gaps: () => streams.flatMap((stream) => stream.gaps()),
    async [Symbol.asyncDispose]() {
      await Promise.all(streams.map((stream) => stream.close()));
    },
  };
}
