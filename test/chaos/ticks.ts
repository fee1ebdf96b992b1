/**
 * A witness of everything that happens to Jobs, ledgers and LockedCronJobs in a namespace, from the first moment on. At the
 * end it says whether each tick had exactly one Job, ever, or a recorded miss, and whether the protocol's rules held at
 * every single version that the API server served.
 */
import {
  ATTEMPT_ANNOTATION,
  LAUNCH_FINALIZER,
  LEDGER_ANNOTATION,
  MANUAL_ANNOTATION,
  RUN_ID_ANNOTATION,
  TICK_ANNOTATION,
  TOKEN_ANNOTATION,
  nameOfLedger,
} from "../../src/api/names.ts";
import type { Job, KubeObject, Lease, LockedCronJob } from "../../src/api/types.ts";
import { resources } from "../../src/controller/caches.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { coreEvents, type KubeClient, type ResourceType } from "../../src/kube/index.ts";
import { violationsOf } from "./rules.ts";
import { openStream, type Stream } from "./stream.ts";

/** A Job that was created, whether it is still there or not. */
export interface CreatedJob {
  readonly uid: string;
  readonly name: string;
  /** uid of the LockedCronJob; undefined for a Job that is none of ours. */
  readonly owner: string | undefined;
  readonly runId: string;
  /** Milliseconds. */
  readonly tick: number;
  readonly token: number;
  readonly attempt: number;
  /** What somebody asked for it by. */
  readonly manual: string | undefined;
  /** resourceVersion of its creation: the order of all writes of the cluster. */
  readonly createdAt: number;
  /** resourceVersion at which the launch finalizer was first seen to be gone. */
  releasedAt?: number;
  deletedAt?: number;
  /** As last seen. */
  object: Job;
}

export interface LedgerVersion {
  readonly version: number;
  readonly leaseUid: string;
  readonly ledger: Ledger;
}

export interface RecordedEvent extends KubeObject {
  reason: string;
  message: string;
  type: string;
  count?: number;
  involvedObject: { kind: string; name: string; uid: string };
}

export interface Witness extends AsyncDisposable {
  /** LockedCronJobs that are there. */
  names(): Iterable<string>;
  /** Every Job of this LockedCronJob's name that was ever created, in that order. */
  jobs(name: string): readonly CreatedJob[];
  /** The newest ledger; undefined when there is none now. */
  ledger(name: string): Ledger | undefined;
  history(name: string): readonly LedgerVersion[];
  /** As last seen; undefined when it is gone. */
  owner(name: string): LockedCronJob | undefined;
  events(reason: string): readonly RecordedEvent[];
  /** Looks again after each thing that happens. @throws Error with what was seen last when it never comes */
  until<T>(what: string, look: () => T | undefined | false, timeoutMs?: number): Promise<T>;
  /** Until so many Jobs were created. */
  created(name: string, count: number, timeoutMs?: number): Promise<readonly CreatedJob[]>;
  /** Until no claim is open, no finalizer is left, and the status tells what the ledger does. */
  settled(name: string, timeoutMs?: number): Promise<void>;
  isSettled(name: string): boolean;
  /**
   * What broke the rules; empty when nothing did. Every name that was ever seen, if none is given. Around gaps only that is
   * judged which does not need every version.
   */
  violations(name?: string): string[];
  /**
   * The same while ticks go on: up to a moment of which everything was seen, as Jobs and ledgers come by streams of their
   * own; and what is on its way then is nothing broken.
   */
  violationsSoFar(): string[];
  /** resourceVersions before which something may have gone unseen, as the API server was restarted. */
  gaps(): readonly number[];
  /** Ticks that the ledger counts as never run. */
  missed(name: string): number;
}

/** As it was at a resourceVersion. */
function seenBy(job: CreatedJob, upTo: number): CreatedJob[] {
  if (job.createdAt > upTo) return [];
  const { releasedAt = Infinity, ...rest } = job;
  return [releasedAt > upTo ? rest : job];
}

const EVENT = coreEvents as ResourceType<RecordedEvent>;
const DEFAULT_TIMEOUT_MS = 90_000;

export async function openWitness(client: KubeClient, namespace: string): Promise<Witness> {
  const created = new Map<string, CreatedJob>();
  const histories = new Map<string, LedgerVersion[]>();
  const leases = new Map<string, Lease>();
  const owners = new Map<string, LockedCronJob>();
  const events = new Map<string, RecordedEvent>();
  const forbid = new Set<string>();
  const waiting = new Set<() => void>();
  /** Newest resourceVersion of each stream. */
  const reached = { jobs: 0, leases: 0 };

  function takeJob(change: string, job: Job): void {
    const { uid, name, annotations = {}, finalizers = [], resourceVersion } = job.metadata;
    const runId = annotations[RUN_ID_ANNOTATION];
    if (runId === undefined) return;
    const version = Number(resourceVersion);
    reached.jobs = Math.max(reached.jobs, version);
    const known = created.get(uid) ?? {
      uid,
      name,
      owner: job.metadata.ownerReferences?.find((o) => o.controller === true)?.uid,
      runId,
      tick: Date.parse(annotations[TICK_ANNOTATION] ?? ""),
      token: Number(annotations[TOKEN_ANNOTATION]),
      attempt: Number(annotations[ATTEMPT_ANNOTATION]),
      manual: annotations[MANUAL_ANNOTATION],
      createdAt: version,
      object: job,
    };
    created.set(uid, known);
    known.object = job;
    if (!finalizers.includes(LAUNCH_FINALIZER)) known.releasedAt ??= version;
    if (change === "DELETED") known.deletedAt = version;
  }

  function takeLease(change: string, lease: Lease): void {
    const name = nameOfLedger(lease.metadata.name);
    reached.leases = Math.max(reached.leases, Number(lease.metadata.resourceVersion));
    if (name === undefined) return;
    if (change === "DELETED") {
      leases.delete(name);
      return;
    }
    leases.set(name, lease);
    const text = lease.metadata.annotations?.[LEDGER_ANNOTATION];
    if (text === undefined) return;
    const history = histories.get(name) ?? [];
    histories.set(name, history);
    history.push({
      version: Number(lease.metadata.resourceVersion),
      leaseUid: lease.metadata.uid,
      ledger: JSON.parse(text) as Ledger,
    });
  }

  function takeOwner(change: string, object: LockedCronJob): void {
    if (object.spec.concurrencyPolicy !== "Allow") forbid.add(object.metadata.uid);
    if (change === "DELETED") owners.delete(object.metadata.name);
    else owners.set(object.metadata.name, object);
  }

  const look = (): void => {
    for (const again of waiting) again();
  };
  const open = <T extends KubeObject>(
    type: ResourceType<T>,
    take: (change: string, object: T) => void,
  ): Promise<Stream> =>
    openStream(client, type, namespace, (change, object) => {
      take(change, object);
      look();
    });
  const streams = await Promise.all([
    open(resources.jobs, takeJob),
    open(resources.leases, takeLease),
    open(resources.lockedCronJobs, takeOwner),
    open(EVENT, (_, event) => void events.set(event.metadata.name ?? "", event)),
  ]);

  const gapsOf = (): number[] => streams.flatMap((stream) => stream.gaps());

  const jobsOf = (name: string): CreatedJob[] =>
    [...created.values()]
      .filter((job) => job.name.slice(0, job.name.lastIndexOf("-")) === name)
      .toSorted((a, b) => a.createdAt - b.createdAt);

  const ledgerOf = (name: string): Ledger | undefined =>
    leases.has(name) ? histories.get(name)?.at(-1)?.ledger : undefined;

  function unsettled(name: string): string | undefined {
    const ledger = ledgerOf(name);
    for (const run of ledger?.runs ?? []) {
      if (run.jobUID === undefined) return `the claim of ${run.jobName} is open`;
      const open = run.attempts.filter((a) => !a.settled);
      if (open.length > 0) return `${run.jobName} has unsettled attempts by ${open[0]?.by}`;
    }
    for (const { object, deletedAt } of jobsOf(name)) {
      if (deletedAt === undefined && object.metadata.finalizers?.includes(LAUNCH_FINALIZER)) {
        return `${object.metadata.name} has its finalizer`;
      }
    }
    const status = owners.get(name)?.status;
    if (ledger !== undefined && owners.has(name) && status?.token !== ledger.token) {
      return `the status says token ${status?.token}, the ledger ${ledger.token}`;
    }
    return undefined;
  }

  const witness: Witness = {
    names: () => owners.keys(),
    jobs: jobsOf,
    ledger: ledgerOf,
    history: (name) => histories.get(name) ?? [],
    owner: (name) => owners.get(name),
    events: (reason) => [...events.values()].filter((event) => event.reason === reason),
    until(what, check, timeoutMs = DEFAULT_TIMEOUT_MS) {
      return new Promise((resolve, reject) => {
        const end = (settle: () => void): void => {
          clearTimeout(timer);
          waiting.delete(again);
          settle();
        };
        const again = (): void => {
          try {
            const seen = check();
            if (seen !== undefined && seen !== false) end(() => resolve(seen));
          } catch (error) {
            end(() => reject(error instanceof Error ? error : new Error(String(error))));
          }
        };
        const timer = setTimeout(
          () => end(() => reject(new Error(`not within ${timeoutMs} ms: ${what}\n${summary()}`))),
          timeoutMs,
        );
        waiting.add(again);
        again();
      });
    },
    created: (name, count, timeoutMs) =>
      witness.until(
        `${count} Jobs of ${name}`,
        () => {
          const jobs = jobsOf(name);
          // Two watches: the claim of the last one came before it, and may be seen after it.
          const newest = jobs.at(-1)?.token ?? 0;
          const claimed = (histories.get(name) ?? []).some(({ ledger }) => ledger.token >= newest);
          return jobs.length >= count && (claimed || count === 0) ? jobs : undefined;
        },
        timeoutMs,
      ),
    isSettled: (name) => unsettled(name) === undefined,
    async settled(name, timeoutMs) {
      try {
        await witness.until(`${name} settled`, () => unsettled(name) === undefined, timeoutMs);
      } catch (cause) {
        throw new Error(`${name} never settles: ${unsettled(name)}`, { cause });
      }
    },
    violations(name) {
      const names = name === undefined ? new Set(histories.keys()) : [name];
      const gaps = gapsOf();
      return [...names].flatMap((of) =>
        violationsOf({
          name: of,
          jobs: jobsOf(of),
          history: histories.get(of) ?? [],
          gaps,
          forbid,
        }),
      );
    },
    violationsSoFar() {
      const upTo = Math.min(reached.jobs, reached.leases);
      return [...histories].flatMap(([name, history]) =>
        violationsOf({
          name,
          jobs: jobsOf(name).flatMap((job) => seenBy(job, upTo)),
          history: history.filter(({ version }) => version <= upTo),
          gaps: gapsOf(),
          forbid,
          goesOn: true,
        }),
      );
    },
    gaps: gapsOf,
    missed: (name) => histories.get(name)?.at(-1)?.ledger.missed ?? 0,
    async [Symbol.asyncDispose]() {
      await Promise.all(streams.map((stream) => stream.close()));
    },
  };

  function summary(): string {
    const names = new Set([...histories.keys(), ...owners.keys()]);
    const lines = [...names].slice(0, 5).map((name) => {
      const list = jobsOf(name).map(
        (job) => `${job.name}#${job.attempt}${job.deletedAt === undefined ? "" : " (deleted)"}`,
      );
      return `${name}: Jobs ${list.join(", ")}; ledger ${JSON.stringify(ledgerOf(name))}`;
    });
    return lines.join("\n");
  }

  return witness;
}
