/**
 * Runs the real reconciler for one step of one process, from the caches and notes that it had when the step began and
 * with the answers that have come in since, up to the next request or to the end of the step. Everything below the
 * reconciler is real too (ledger and job stores, attempt book, turns); only the client, the lock and membership are not.
 */
import { createScheduleCache } from "../../../src/controller/schedule-cache.ts";
import { keyOf, ledgerName, mutexLeaseName } from "../../../src/api/names.ts";
import type { Job, Lease, LockedCronJob } from "../../../src/api/types.ts";
import type { Clock } from "../../../src/clock.ts";
import {
  createAttemptBook,
  REQUEST_BOUND_MS,
  type AttemptBook,
} from "../../../src/controller/attempts.ts";
import { resources } from "../../../src/controller/caches.ts";
import { createJobStore } from "../../../src/controller/job-store.ts";
import { createLedgerStore } from "../../../src/controller/ledger-store.ts";
import { createMutexBook } from "../../../src/controller/mutexes.ts";
import { createMutexStore } from "../../../src/controller/mutex-store.ts";
import { createMutexSweep } from "../../../src/controller/mutex-sweep.ts";
import type { ElectionOutcome, Locks, Members } from "../../../src/controller/ports.ts";
import { createReconciler } from "../../../src/controller/reconciler.ts";
import { createStuckLocks } from "../../../src/controller/stuck-locks.ts";
import { createTurns } from "../../../src/controller/turns.ts";
import { hasReason, isKubeError, KubeError, type KubeClient } from "../../../src/kube/index.ts";
import type { JobView } from "../../../src/domain/job.ts";
import { electionsOver } from "../../builders/context.ts";
import type {
  Answer,
  Failure,
  Item,
  Known,
  Note,
  Request,
  Start,
  Tamper,
  WatchEvent,
} from "./types.ts";

/** The mutex, and the other LockedCronJob that uses it. */
export const MUTEX = keyOf("team", "db");
export const RIVAL = "rival";
export const KEY = keyOf("team", "report");

/** How a step stands: it waits for an answer, or it is over. */
export type Standing = { request: Request } | { known: Known; notes: readonly Note[] };

/** Thrown where the reconciler would begin its next step: the model lets others act before that. */
class StepOver extends Error {}

export async function play(
  process: string,
  start: Start,
  items: readonly Item[],
  tamper: Tamper,
): Promise<Standing> {
  const session = open(process, start, tamper);
  for (const item of items) {
    if ("event" in item) await session.observe(item.event);
    else await session.answer(item.answer);
  }
  return session.standing();
}

function open(process: string, start: Start, tamper: Tamper) {
  let pending: { request: Request; settle: (answer: Answer) => void } | undefined;
  let stepped = false;
  let over = false;
  let failure: Error | undefined;
  let wake: () => void = () => undefined;

  const ask: Ask = (asked) => {
    const request = tamper.request?.(asked) ?? asked;
    return new Promise((resolve, reject) => {
      pending = {
        request,
        settle(answer) {
          pending = undefined;
          if ("failed" in answer) reject(errorOf(answer.failed, request));
          else resolve("elected" in answer ? answer : answer.ok);
        },
      };
      wake();
    });
  };

  const stores = openStores(start.known, ask);
  const { ledgers, jobs } = stores;
  const clock: Clock = { now: () => start.now, monotonic: () => start.now };

  const members: Members = {
    live: () => [replicaOf(process)],
    confirm: () => Promise.resolve(true),
    stateOf: (p) => (p === process ? "alive" : start.past.includes(p) ? "past" : "silent"),
  };
  const { book, notes } = bookOf(process, start, members, tamper);
  const locks: Locks = {
    async tryAcquire(key, _, leaseMs) {
      // Only elections are asked for; what a run locks in Redis is out of reach, for nothing may depend on it.
      if (leaseMs !== ELECTION_LEASE_MS) return { outcome: "noQuorum", isValid: () => false };
      const { elected } = (await ask({ verb: "elect" })) as { elected: ElectionOutcome };
      return { outcome: elected, isValid: () => elected === "won" };
    },
    extendMany: (entries) => Promise.resolve(entries.map(() => "renewed" as const)),
    release: () => Promise.resolve(),
  };
  const { fences } = stores;
  const real = createMutexBook({ fences, ledgers, jobs, locks, lockPrefix: "lockedcron:c1" });
  const mutexes = {
    ...real,
    isOver: async (holder: string) => {
      const over = await real.isOver(holder);
      return tamper.holderOver?.(over) ?? over;
    },
  };
  const sweep = createMutexSweep({
    held: fences.held,
    mutexes,
    members,
    replica: replicaOf(process),
    timers: { after: () => () => undefined },
  });
  const reconciler = createReconciler({
    context: {
      process,
      replica: replicaOf(process),
      clock,
      random: () => 0.5,
      ledgers,
      jobs,
      owners: {
        cached() {
          if (stepped) throw new StepOver();
          return stores.owner();
        },
        async read() {
          const object = await ask({ verb: "get", of: "owner" }).catch(undefinedIfGone);
          return object as LockedCronJob | undefined;
        },
      },
      elections: electionsOver(locks),
      locks,
      mutexes,
      members,
      attempts: book,
      stuckLocks: createStuckLocks(clock),
      events: { event: () => undefined },
      observe: {
        ...silent,
        step({ error }) {
          stepped = true;
          // What is not the world's refusal is a mistake in the code, and it would be retried for ever.
          if (error instanceof Error && !isKubeError(error)) failure = error;
        },
      },
      onStep: () => Promise.resolve(),
      lockPrefix: "lockedcron:c1",
      sharedMutexNamespaces: [],
      electionLeaseMs: () => ELECTION_LEASE_MS,
    },
    // Nobody waits for anybody: in the model any process may act at any moment.
    clockSkewMs: () => 0,
    turns: createTurns({ process, clock, members, takeOverAfterMs: 0 }),
    rankDelayMs: 0,
    rank: () => 0,
    schedules: createScheduleCache(),
    dueAtOnce: () => 1,
    agenda: { set: () => undefined, delete: () => undefined },
    followUp: () => undefined,
    onServed: () => undefined,
    onSettled: () => undefined,
  });

  let parked = new Promise<void>((resolve) => (wake = resolve));
  const ended = (): void => {
    over = true;
    wake();
  };
  const begun: Promise<unknown> =
    start.program === "sweep" ? sweep.round() : reconciler.reconcile(KEY);
  begun.then(ended, (error: unknown) => {
    if (!(error instanceof StepOver)) failure = new Error("the reconcile threw", { cause: error });
    ended();
  });

  return {
    async observe(event: WatchEvent): Promise<void> {
      await parked;
      stores.observe(event);
    },
    async answer(answer: Answer): Promise<void> {
      await parked;
      if (pending === undefined) throw new Error("an answer to a question that was not asked");
      parked = new Promise<void>((resolve) => (wake = resolve));
      pending.settle(answer);
    },
    async standing(): Promise<Standing> {
      await parked;
      if (failure !== undefined) throw failure;
      if (!over && pending !== undefined) return { request: pending.request };
      return { known: stores.known(), notes: notes() };
    },
  };
}

/** What the caches hold after the watch has told this. */
export function learn(known: Known, event: WatchEvent): Known {
  const stores = openStores(known, () => Promise.reject(new Error("a watch asks nothing")));
  stores.observe(event);
  return stores.known();
}

type Ask = (request: Request) => Promise<object | undefined>;

/** The real stores, holding what the process knew. */
function openStores(before: Known, ask: Ask) {
  let { owner } = before;
  /** The Jobs that the store has been given, so that its views can be told in full again. */
  const given = [...before.jobs];
  const client = clientOf(ask, (job) => given.push(job));
  const clock: Clock = { now: () => 0, monotonic: () => 0 };
  const onChange = (): void => undefined;
  const { leases } = resources;
  const ledgers = createLedgerStore({ client, clock, leases, onChange });
  const jobs = createJobStore({ client, jobs: resources.jobs, pods: resources.pods, onChange });
  const fences = createMutexStore({ client, clock, leases, onChange });
  if (before.lease !== undefined) ledgers.observe(before.lease);
  if (before.fence !== undefined) fences.observe(before.fence);
  for (const job of before.jobs) jobs.observe(job);

  function inFull({ uid, resourceVersion }: JobView): Job {
    const job = given.find(
      ({ metadata: m }) => m.uid === uid && m.resourceVersion === resourceVersion,
    );
    if (job === undefined) throw new Error(`the cache holds job ${uid}, which nobody gave it`);
    return job;
  }

  return {
    ledgers,
    jobs,
    fences,
    owner: () => owner,
    observe(event: WatchEvent): void {
      if (event.of === "owner") owner = event.gone ? undefined : event.object;
      else if (event.of === "fence") {
        (event.gone ? fences.observeDeleted : fences.observe)(event.object);
      } else if (event.of === "lease") {
        (event.gone ? ledgers.observeDeleted : ledgers.observe)(event.object);
      } else {
        given.push(event.object);
        (event.gone ? jobs.observeDeleted : jobs.observe)(event.object);
      }
    },
    known(): Known {
      const lease = (ledgers.cached(KEY) as { lease: Lease } | undefined)?.lease;
      const fence = (fences.cached(MUTEX) as { lease: Lease } | undefined)?.lease;
      const known = { owner, lease, jobs: jobs.cached(KEY).map(inFull) };
      return fence === undefined ? known : { ...known, fence };
    },
  };
}

const silent = {
  elected: () => undefined,
  launched: () => undefined,
  missed: () => undefined,
  claimConflict: () => undefined,
  takeover: () => undefined,
  jobCreate: () => undefined,
  mutexWait: () => undefined,
  mutexBusy: () => undefined,
  lockTakenOver: () => undefined,
  lockHeld: () => undefined,
  lockRenewal: () => undefined,
};

/** The real book, with what the process noted before the step, and the notes as they are after it. */
function bookOf(process: string, start: Start, members: Members, tamper: Tamper) {
  const all = new Map(start.notes.map((note) => [`${note.runId}#${note.n}`, note]));
  let now = start.now - REQUEST_BOUND_MS - 1;
  const clock: Clock = { now: () => start.now, monotonic: () => now };
  const real = createAttemptBook({ process, clock, members });
  const replay = (note: Note): void => {
    real.sending(note.runId, note.n);
    if (note.state === "answered") real.answered(note.runId, note.n);
  };
  for (const note of start.notes) if (note.over) replay(note);
  now = start.now;
  for (const note of start.notes) if (!note.over) replay(note);
  const noted = (runId: string, n: number, state: Note["state"]): void =>
    void all.set(`${runId}#${n}`, { runId, n, state, over: false });

  const book: AttemptBook = {
    sending(runId, n) {
      noted(runId, n, "sent");
      real.sending(runId, n);
    },
    answered(runId, n) {
      noted(runId, n, "answered");
      real.answered(runId, n);
    },
    notSent(runId, n) {
      all.delete(`${runId}#${n}`);
      real.notSent(runId, n);
    },
    fateOf(run, attempt) {
      const fate = real.fateOf(run, attempt);
      return tamper.fate?.(fate) ?? fate;
    },
  };
  return { book, notes: () => [...all.values()] };
}

function clientOf(ask: Ask, seen: (job: Job) => void): KubeClient {
  const askForJob = async (request: Request): Promise<object | undefined> => {
    const job = (await ask(request)) as Job | undefined;
    if (job !== undefined) seen(job);
    return job;
  };
  const client: Partial<Record<keyof KubeClient, unknown>> = {
    get: (type: { plural: string }, { name }: { name: string }) =>
      type.plural === "leases"
        ? ask({ verb: "get", of: leaseCalled(name) })
        : askForJob({ verb: "get", of: "job", name }),
    async list(type: { plural: string }, { labelSelector = "" }: { labelSelector?: string }) {
      if (type.plural === "pods") {
        const [label = "", value = ""] = labelSelector.split("=");
        return label.endsWith("/job-name")
          ? ask({ verb: "list", of: "podsNamed", jobName: value })
          : ask({ verb: "list", of: "pods", jobUid: value });
      }
      const list = (await ask({ verb: "list", of: "jobs" })) as { items: Job[] };
      list.items.forEach(seen);
      return list;
    },
    create: (type: { plural: string }, body: unknown) =>
      type.plural === "leases"
        ? ask({ verb: "create", of: fenceOrLedger(body as Lease), body: body as Lease })
        : askForJob({ verb: "create", of: "job", body: withoutSpec(body as Job) }),
    update: (_: unknown, body: unknown) =>
      ask({ verb: "update", of: fenceOrLedger(body as Lease), body: body as Lease }),
    patch: (_: unknown, { name }: { name: string }, patch: { body: unknown }) => {
      const { uid } = (patch.body as { metadata: { uid: string } }).metadata;
      return askForJob({ verb: "unhold", of: "job", name, uid });
    },
    delete: (
      _: unknown,
      { name }: { name: string },
      { preconditions = {} }: { preconditions?: { uid?: string } },
    ) => ask({ verb: "delete", of: "job", name, uid: preconditions.uid ?? "" }),
  };
  return client as unknown as KubeClient;
}

const ELECTION_LEASE_MS = 3_000;

function leaseCalled(name: string): "lease" | "fence" | "rival" {
  if (name === mutexLeaseName("db")) return "fence";
  return name === ledgerName(RIVAL) ? "rival" : "lease";
}

function fenceOrLedger({ metadata }: Lease): "fence" | "lease" {
  return leaseCalled(metadata.name) === "fence" ? "fence" : "lease";
}

function withoutSpec(job: Job): Job {
  const { spec: _, ...rest } = job;
  return rest;
}

function undefinedIfGone(error: unknown): undefined {
  if (!hasReason(error, "NotFound")) throw error;
  return undefined;
}

const STATUS: Record<Failure, number> = {
  Conflict: 409,
  NotFound: 404,
  AlreadyExists: 409,
  Forbidden: 403,
  NotSent: 0,
  Lost: 0,
};

function errorOf(failure: Failure, request: Request): KubeError {
  return new KubeError({
    action: request.verb,
    status: STATUS[failure],
    reason: failure === "Lost" ? "DeadlineExceeded" : failure,
    message: failure,
    outcome: failure === "Lost" ? "unknown" : "rejected",
  });
}

function replicaOf(process: string): string {
  return process.slice(0, process.indexOf("/"));
}
