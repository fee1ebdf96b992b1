/**
 * A cluster in memory with one replica that is there, or not: the real reconciler over a fake clock, so that a month of
 * outages passes in milliseconds. What becomes of lost answers and of two replicas is the model's business (../model).
 */
import { keyOf } from "../../../src/api/names.ts";
import type { Job, LockedCronJob } from "../../../src/api/types.ts";
import { createReconciler } from "../../../src/controller/reconciler.ts";
import { createScheduleCache } from "../../../src/controller/schedule-cache.ts";
import type { LedgerRecord } from "../../../src/controller/ports.ts";
import { viewOf, type JobView } from "../../../src/domain/job.ts";
import type { Ledger } from "../../../src/domain/ledger.ts";
import { aContext, aRecord } from "../../builders/context.ts";
import { aLedger, at } from "../../builders/objects.ts";
import { ourTurns } from "../../builders/turns.ts";

export interface Ran {
  tick: number;
  from: number;
  /** Infinity while it runs. */
  to: number;
}

export interface OutageWorld {
  /** Time passes up to `end`; the replica is there only between these instants (from, to). */
  live(up: readonly [number, number][], end: number): Promise<void>;
  edit(spec: Partial<LockedCronJob["spec"]>): void;
  readonly runs: readonly Ran[];
  ledger(): Ledger;
}

export function createOutageWorld(o: {
  owner: LockedCronJob;
  /** How long the n-th run lasts, ms. */
  lasts(n: number): number;
  begin: number;
}): OutageWorld {
  let now = o.begin;
  let version = 0;
  let record: LedgerRecord | undefined;
  let { owner } = o;
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  const jobs = new Map<string, JobView>();
  const runs: (Ran & { name: string })[] = [];
  let wakeAt = Infinity;

  const end = (name: string, change: Partial<JobView>): void => {
    const run = runs.find((r) => r.name === name);
    if (run?.to === Infinity) run.to = now;
    const job = jobs.get(name);
    if (job !== undefined) jobs.set(name, { ...job, ...change });
  };
  const write = (ledger: Ledger): Promise<LedgerRecord> => {
    record = aRecord(ledger, { resourceVersion: String(++version) });
    return Promise.resolve(record);
  };
  const reconciler = createReconciler({
    context: aContext({
      clock: { now: () => now, monotonic: () => now },
      owners: { cached: () => owner, read: () => Promise.resolve(owner) },
      ledgers: {
        cached: () => record,
        read: () => Promise.resolve(record),
        last: () => undefined,
        reserve() {
          const contents = { state: "orphan", why: "empty", held: false } as const;
          record = { ...aRecord(aLedger()), contents, resourceVersion: String(++version) };
          return Promise.resolve(record);
        },
        create: (_, ledger) => write(ledger),
        write: (_, ledger) => write(ledger),
      },
      jobs: {
        cached: () => [...jobs.values()],
        list: () => Promise.resolve([...jobs.values()]),
        read: (_, name) => Promise.resolve(jobs.get(name)),
        create: (job) => Promise.resolve(create(job as Job)),
        dropFinalizer: (job) => {
          jobs.set(job.name, { ...job, hasLaunchFinalizer: false });
          return Promise.resolve();
        },
        delete: (job) => {
          end(job.name, {});
          jobs.delete(job.name);
          return Promise.resolve();
        },
        hasLivePods: () => Promise.resolve(false),
      },
      locks: {
        tryAcquire: () => Promise.resolve({ outcome: "won", isValid: () => true }),
        release: () => Promise.resolve(),
      },
      attempts: {
        sending: () => undefined,
        answered: () => undefined,
        fateOf: () => "past",
      },
    }),
    schedules: createScheduleCache(),
    turns: ourTurns(),
    rankDelayMs: 75,
    rank: () => 0,
    dueAtOnce: () => 1,
    agenda: { set: (_, when) => (wakeAt = when), delete: () => (wakeAt = Infinity) },
    onServed: () => undefined,
    followUp: () => (wakeAt = now),
    onSettled: () => undefined,
    clockSkewMs: () => 0,
  });

  function create(job: Job): JobView {
    const uid = `job-${runs.length}`;
    const metadata = { ...job.metadata, uid, resourceVersion: "1", creationTimestamp: at(now) };
    const view = viewOf({ ...job, metadata });
    if (jobs.has(view.name) || runs.some((r) => r.name === view.name)) {
      throw new Error(`${view.name} ran before`);
    }
    jobs.set(view.name, view);
    runs.push({ name: view.name, tick: view.tick ?? 0, from: now, to: Infinity });
    return view;
  }

  async function look(): Promise<void> {
    for (let looks = 0; ; looks++) {
      if (looks > 500) throw new Error("it goes round in circles");
      wakeAt = Infinity;
      const outcome = await reconciler.reconcile(key);
      if (outcome.kind === "retry") throw outcome.error;
      if (outcome.kind === "again") wakeAt = Math.min(wakeAt, outcome.at);
      if (wakeAt > now) return;
    }
  }

  function nextEnd(): { at: number; name: string } {
    let first = { at: Infinity, name: "" };
    for (const [n, { from, to, name }] of runs.entries()) {
      const ends = from + o.lasts(n);
      if (to === Infinity && ends < first.at) first = { at: ends, name };
    }
    return first;
  }

  return {
    async live(up, until) {
      const changes = up.flat().filter((when) => when > now && when < until);
      for (;;) {
        const isUp = up.some(([from, to]) => from <= now && now < to);
        if (isUp) await look();
        const ending = nextEnd();
        const change = changes.find((when) => when > now) ?? Infinity;
        const next = Math.min(isUp ? wakeAt : Infinity, ending.at, change, until);
        if (next >= until) break;
        now = Math.max(now, next);
        if (ending.at <= now) end(ending.name, { outcome: "Complete", finishedAt: now });
      }
      now = until;
    },
    edit(spec) {
      owner = { ...owner, spec: { ...owner.spec, ...spec } };
    },
    runs,
    ledger: () => {
      if (record?.contents.state !== "present") throw new Error("there is no ledger yet");
      return record.contents.ledger;
    },
  };
}
