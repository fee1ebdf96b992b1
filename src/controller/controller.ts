/**
 * The controller of one replica: wires stores, queue, reconciler, watchdog and status writer to each other, and starts
 * and stops them in order.
 */
import type { Key } from "../api/names.ts";
import { createAgenda } from "./agenda.ts";
import { createAttemptBook, REQUEST_BOUND_MS } from "./attempts.ts";
import { createCaches, resources } from "./caches.ts";
import type { Context } from "./context.ts";
import type { Controller, ControllerOptions } from "./controller-options.ts";
import { createCrowd } from "./crowd.ts";
import { createElections } from "./elections.ts";
import { createJobStore } from "./job-store.ts";
import { createLedgerStore } from "./ledger-store.ts";
import { createLockLost } from "./lock-lost.ts";
import { replicaOf } from "./member-lease.ts";
import { createMembership } from "./membership.ts";
import { createMutexParts } from "./mutex-parts.ts";
import type { StepHook } from "./ports.ts";
import { startPulse } from "./pulse.ts";
import { createReconciler } from "./reconciler.ts";
import { createScheduleCache } from "./schedule-cache.ts";
import { createStatusWriter } from "./status-writer.ts";
import { createTemplateCheck } from "./template-check.ts";
import { createStuckLocks } from "./stuck-locks.ts";
import { createSweeper, PRIORITY } from "./sweeper.ts";
import { createTurns, crowdMs } from "./turns.ts";
import { createWatchdog } from "./watchdog.ts";
import { createWorkQueue, done } from "./workqueue.ts";

const STATUS_WORKERS = 4;
const STATUS_DELAY_MS = 300;

export function createController(o: ControllerOptions): Controller {
  const { client, clock, timers, random, requestBoundMs = REQUEST_BOUND_MS } = o;
  const onStep: StepHook = o.onStep ?? (() => Promise.resolve());
  const isOwn = (process: string): boolean => process === o.process;
  const agenda = createAgenda();
  let phase: "starting" | "running" | "stopping" = "starting";
  let pulse: { stop(): Promise<void> } | undefined;

  const changed = (key: Key): void => {
    if (phase === "running") queue.add(key, { priority: PRIORITY.watch });
  };
  const ledgers = createLedgerStore({
    client,
    leases: resources.leases,
    clock,
    onChange: changed,
    onGone: (key, last) => watchdog.letGo(key, last),
  });
  const jobs = createJobStore({
    client,
    jobs: resources.jobs,
    pods: resources.pods,
    onChange(key) {
      crowd.served(key);
      changed(key);
    },
  });
  const membership = createMembership({
    client,
    clock,
    timers,
    leases: resources.leases,
    pods: resources.pods,
    namespace: o.namespace,
    replica: o.replica,
    podName: o.podName,
    process: o.process,
    leaseSeconds: o.membershipLeaseSeconds,
    requestBoundMs,
    onHealth: o.hooks.membershipHealth,
    onTrouble: o.hooks.membershipTrouble,
    onSuperseded: o.hooks.superseded,
    owes: (replica) => ledgers.withAttemptsOf((p) => replicaOf(p) === replica).length > 0,
    onChange: () => {
      if (phase === "running") for (const key of ledgers.withRuns()) changed(key);
    },
  });
  const mutexes = createMutexParts({
    ...o,
    leases: resources.leases,
    ledgers,
    jobs,
    members: membership,
    onChange: (mutex) => ledgers.waitingFor(mutex).forEach(changed),
  });
  const caches = createCaches({
    client,
    clock,
    namespace: o.namespace,
    watchNamespaces: o.watchNamespaces,
    sharedMutexNamespaces: o.sharedMutexNamespaces,
    owners: {
      changed(key) {
        changed(key);
        statusQueue.addAfter(key, STATUS_DELAY_MS);
      },
      deleted(key) {
        agenda.delete(key);
        changed(key);
      },
    },
    jobs: { changed: jobs.observe, deleted: jobs.observeDeleted },
    ledgers: { changed: ledgers.observe, deleted: ledgers.observeDeleted },
    mutexes: mutexes.watch,
    podGone: changed,
    replicas: { changed: membership.observe, deleted: membership.observeDeleted },
    onHealth: o.hooks.watchHealth,
  });
  const crowd = createCrowd({ clock, timers, onOver: () => queue.resume() });
  const sweeper = createSweeper({
    clock,
    agenda,
    skewMs: o.clockSkewMs,
    rank: membership.rank,
    running: () => phase === "running",
    keys: caches.owners.keys,
    onDue: crowd.arrived,
    add: (key, priority) => queue.add(key, { priority }),
  });
  const attempts = createAttemptBook({
    process: o.process,
    clock,
    members: membership,
    requestBoundMs,
  });
  const electionLeaseMs = (): number => o.electionLeaseMs + crowdMs(sweeper.dueAtOnce());
  const elections = createElections({
    locks: o.locks,
    timers,
    random,
    leaseMs: electionLeaseMs,
    next: (count, passOver) =>
      queue
        .upcoming(count, PRIORITY.due)
        .flatMap((key) => (passOver(key) ? [] : (reconciler.candidate(key) ?? []))),
  });
  const context: Context = {
    process: o.process,
    replica: o.replica,
    clock,
    random,
    ledgers,
    jobs,
    owners: caches.owners,
    elections,
    locks: o.locks,
    mutexes: mutexes.book,
    members: membership,
    attempts,
    stuckLocks: createStuckLocks(clock),
    events: o.events,
    observe: o.observe,
    onStep,
    lockPrefix: o.lockPrefix,
    sharedMutexNamespaces: o.sharedMutexNamespaces,
    electionLeaseMs,
  };
  const turns = createTurns({
    process: o.process,
    clock,
    members: membership,
    takeOverAfterMs: o.takeOverAfterMs,
    crowdMs: () => crowdMs(sweeper.dueAtOnce()),
  });
  const schedules = createScheduleCache();
  const reconciler = createReconciler({
    context,
    schedules,
    turns,
    agenda,
    rank: membership.rank,
    rankDelayMs: o.rankDelayMs,
    clockSkewMs: o.clockSkewMs,
    dueAtOnce: sweeper.dueAtOnce,
    followUp: (key) => queue.add(key, { priority: PRIORITY.followUp }),
    onServed: crowd.served,
    onSettled: (key) => statusQueue.addAfter(key, STATUS_DELAY_MS),
    stopping: () => phase === "stopping",
  });
  const queue = createWorkQueue({
    async reconcile(key, { priority }) {
      if (priority > PRIORITY.dueLater || !crowd.isServed(key)) return reconciler.reconcile(key);
      // Nobody needs us for its tick, and all the rest can wait.
      changed(key);
      return done();
    },
    concurrency: o.workers,
    floor: () => (crowd.busy() ? PRIORITY.dueLater : -Infinity),
    clock,
    timers,
    random,
    hooks: {
      onAdd: o.hooks.queueAdd,
      onOutcome: (_, outcome, { runMs }) => o.hooks.queueOutcome(outcome, runMs / 1000),
      onStuck: o.hooks.queueStuck,
    },
  });
  const statusWriter = createStatusWriter({
    client,
    random,
    lockedCronJobs: resources.lockedCronJobs,
    owners: caches.owners,
    ledgers,
    members: membership,
    clock,
    replica: o.replica,
    lockBackend: o.lockBackend,
    templates: createTemplateCheck({ client, jobs: resources.jobs, clock, events: o.events }),
    sharedMutexNamespaces: o.sharedMutexNamespaces,
    validUntil: (runId) => watchdog.validUntil(runId),
    busy: () => phase === "starting" || crowd.busy() || queue.waiting(PRIORITY.dueLater) > 0,
    schedules,
    onStep,
  });
  const statusQueue = createWorkQueue({
    reconcile: statusWriter.reconcile,
    concurrency: STATUS_WORKERS,
    clock,
    timers,
    random,
    hooks: {
      onOutcome: (key, outcome) => {
        if (outcome.kind === "retry") o.hooks.statusFailed(key, outcome.error);
      },
    },
  });
  const watchdog = createWatchdog({
    lockPrefix: o.lockPrefix,
    onLost: createLockLost({ ...o, jobs, owners: caches.owners, onTrouble: o.hooks.onLostFailed }),
    ledgers,
    owners: caches.owners,
    locks: o.locks,
    members: membership,
    events: o.events,
    observe: o.observe,
    clock,
    timers,
    replica: o.replica,
    process: o.process,
    isStale: caches.isStale,
  });

  return {
    async start(signal) {
      pulse = startPulse(sweeper.beat);
      caches.start();
      await Promise.all([membership.start(), caches.synced(signal)]);
      phase = "running";
      const keys = new Set([...caches.owners.keys(), ...ledgers.keys(), ...jobs.keys()]);
      for (const key of keys) queue.add(key, { priority: PRIORITY.watch });
      watchdog.start();
      mutexes.start();
    },
    async stop(graceMs) {
      phase = "stopping";
      await pulse?.stop();
      const until = clock.monotonic() + graceMs;
      const unfinished = await queue.drain(graceMs);
      elections.close();
      await endLaunches(until, unfinished);
      await statusQueue.drain(Math.max(0, until - clock.monotonic()));
      await watchdog[Symbol.asyncDispose]();
      await mutexes[Symbol.asyncDispose]();
      // ORDER: whoever leaves an attempt unsettled, or a claim on its way, keeps the Lease: by it his death is proven.
      const owed = [...unfinished, ...ledgers.withAttemptsOf(isOwn)];
      if (owed.length > 0) await membership[Symbol.asyncDispose]();
      else await membership.resign();
      await caches[Symbol.asyncDispose]();
      return { unfinished };
    },
    lockBackendChanged() {
      for (const key of caches.owners.keys()) statusQueue.addAfter(key, 2_000 + random() * 3_000);
    },
    busy: crowd.busy,
    stats: () => ({
      lockedCronJobs: caches.owners.size(),
      queued: queue.waiting(),
      replicas: membership.live().length,
      locksHeld: watchdog.held(),
      pulseAt: sweeper.beatAt(),
    }),
  };

  /** Launches between two steps. ORDER: none that still runs; two at work on a key could send an attempt twice. */
  async function endLaunches(until: number, running: readonly Key[]): Promise<void> {
    const deadline = Promise.withResolvers<void>();
    const callOff = timers.after(Math.max(0, until - clock.monotonic()), deadline.resolve);
    const open = ledgers.withAttemptsOf(isOwn).filter((key) => !running.includes(key));
    await Promise.race([Promise.allSettled(open.map(reconciler.reconcile)), deadline.promise]);
    callOff();
  }
}
