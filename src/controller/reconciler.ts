/**
 * Reconcile: gather what is known, decide, carry one step out, and again until there is nothing left to do now. All
 * I/O of a decision is here and in the effects it calls; the decision itself is pure.
 */
import type { Key } from "../api/names.ts";
import { Reason } from "../api/reasons.ts";
import type { LockedCronJob } from "../api/types.ts";
import { decide, type Decision, type Snapshot } from "../domain/decide/index.ts";
import { standByMs } from "../domain/election.ts";
import type { Ledger } from "../domain/ledger.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import { mutexesOf } from "../domain/lock-terms.ts";
import { candidateOf, type Candidate } from "./elections.ts";
import { launch, send, takeOver } from "./launch.ts";
import { initLedger, ledgerFor } from "./ledger-making.ts";
import { lockMutexes } from "./mutex-effects.ts";
import type { LedgerRecord } from "./ports.ts";
import type { ScheduleCache } from "./schedule-cache.ts";
import type { Turns } from "./turns.ts";
import { upkeepOf } from "./upkeep.ts";
import * as ledgers from "./ledger-effects.ts";
import * as runs from "./run-effects.ts";
import { letLockGo } from "./run-locks.ts";
import { again, done, retry, type Outcome } from "./workqueue.ts";

export interface ReconcilerOptions {
  context: Context;
  schedules: ScheduleCache;
  turns: Turns;
  rankDelayMs: number;
  /** How many replicas go before this one for a key. */
  rank(key: Key): number;
  /** See Snapshot. */
  clockSkewMs(): number;
  /** How many LockedCronJobs became due in the same sweep. */
  dueAtOnce(): number;
  /** Where instants further away than the next pulse are kept. */
  agenda: { set(key: Key, at: number): void; delete(key: Key): void };
  /** Looks at a key again as soon as no tick is due. */
  followUp(key: Key): void;
  /** The key has no tick any more that somebody is still to decide. */
  onServed(key: Key): void;
  /** Called when there is nothing more to do now: the status may have changed. */
  onSettled(key: Key): void;
  /** The replica is going: only what it has begun is brought to its end. */
  stopping?: () => boolean;
}

export interface Reconciler {
  reconcile(key: Key): Promise<Outcome>;
  /** The tick that a reconcile of this key would launch now. */
  candidate(key: Key): Candidate | undefined;
}

/** Steps of one reconcile; a run needs five from due to started, so more than this means going round in circles. */
const MAX_STEPS = 12;
/** What ends a launch that was begun, and begins none. */
const ENDS_A_LAUNCH: readonly Decision["do"][] = [
  "send",
  "recordStarted",
  "settle",
  "dropFinalizer",
  "finish",
  "letLockGo",
  "close",
];
/** Instants nearer than this are left to the work queue's own timer, others to the pulse. */
const SOON_MS = 1_000;

export function createReconciler(o: ReconcilerOptions): Reconciler {
  const c = o.context;
  const { schedules } = o;
  /** What the last event of a key was given for. */
  const eventGiven = new Map<Key, string>();

  function gather(key: Key, passOver?: ReadonlySet<string>): World {
    const owner = c.owners.cached(key);
    const record = c.ledgers.cached(key);
    const rank = o.rank(key);
    const standBy = standByMs(rank, o.dueAtOnce(), o.rankDelayMs);
    const state = ledgerFor(owner, record);
    o.turns.keep(key, state.state === "present" ? state.ledger.runs : []);
    return {
      key,
      owner,
      record,
      snapshot: {
        now: c.clock.now(),
        clockSkewMs: o.clockSkewMs(),
        owner,
        schedule: owner === undefined ? undefined : schedules.of(key, owner),
        ledger: state,
        ...(passOver === undefined ? {} : { passOver }),
        jobs: c.jobs.cached(key),
        rank,
        standByMs: standBy,
        fateOf: (run, attempt) => c.attempts.fateOf(run, attempt),
        oursAt: (run) => o.turns.oursAt(key, run, standBy),
        askedForMs: (request) => o.turns.askedForMs(key, request),
        ...(owner?.spec.lock?.mutexes === undefined
          ? {}
          : { mutexes: mutexesOf(owner, c.sharedMutexNamespaces) }),
        busyOn: (run) =>
          state.state === "present" ? c.mutexes.busyOn(key, state.ledger, run) : undefined,
      },
    };
  }

  async function step(w: World, decision: Decision): Promise<StepResult> {
    const begun = c.clock.monotonic();
    let result: StepResult;
    try {
      result = await carryOut(c, w, decision);
    } catch (error) {
      result = { next: "retry", error, outcome: "failed" };
    }
    c.observe.step({
      key: w.key,
      action: decision.do,
      reason: decision.reason,
      message: decision.message,
      outcome: result.outcome,
      ms: c.clock.monotonic() - begun,
      ...("run" in decision
        ? { tick: decision.run.tick, runId: decision.run.runId, token: decision.run.token }
        : {}),
      ...("tick" in decision ? { tick: decision.tick } : {}),
      ...(result.next === "retry" ? { error: result.error } : {}),
    });
    return result;
  }

  function rest(w: World, decision: Decision): Outcome {
    giveEvent(w, decision);
    if (decision.reason !== Reason.StandBy) o.onServed(w.key);
    o.onSettled(w.key);
    const { at } = decision;
    if (at === undefined) {
      o.agenda.delete(w.key);
      return done();
    }
    if (at - c.clock.now() <= SOON_MS) return again(at);
    o.agenda.set(w.key, at);
    return done();
  }

  function giveEvent({ key, owner }: World, { event }: Decision): void {
    if (event === undefined || owner === undefined || eventGiven.get(key) === event.once) return;
    eventGiven.set(key, event.once);
    c.events.event(owner, event.type, event.reason, event.message);
  }

  async function reconcile(key: Key): Promise<Outcome> {
    /** Runs whose next step has to wait until `later`. They hold up neither each other nor what is due. */
    const passOver = new Set<string>();
    let later = Infinity;
    for (let steps = 0; steps < MAX_STEPS + passOver.size; steps++) {
      const world = gather(key, passOver);
      let decision = decide(world.snapshot);
      if (decision.do === "nothing") {
        const upkeep = upkeepOf(world.snapshot, world.record, decision);
        if (upkeep === undefined) {
          if (world.owner === undefined) {
            schedules.forget(key);
            o.turns.forget(key);
            if (world.record === undefined) c.ledgers.forget(key);
            eventGiven.delete(key);
          }
          const outcome = rest(world, decision);
          return later === Infinity ? outcome : again(Math.min(later, decision.at ?? Infinity));
        }
        decision = upkeep;
      }
      const stopping = o.stopping?.() === true;
      if (stopping && !ENDS_A_LAUNCH.includes(decision.do)) return done();
      const result = await step(world, decision);
      if (result.next === "retry") {
        // History that cannot be pruned must hold up neither the next tick nor the status.
        if (decision.do === "prune") {
          if (decision.at !== undefined) o.agenda.set(key, decision.at);
          o.onSettled(key);
        }
        return retry(result.error);
      }
      if (result.next === "followUp" && !stopping) {
        o.onServed(key);
        o.followUp(key);
        return done();
      }
      if (result.next === "again" && "run" in decision && !stopping) {
        passOver.add(decision.run.runId);
        later = Math.min(later, result.at);
      } else if (result.next === "again") {
        o.onSettled(key);
        return again(Math.min(result.at, decision.at ?? Infinity));
      }
    }
    return again(c.clock.now() + SOON_MS);
  }

  function candidate(key: Key): Candidate | undefined {
    const { snapshot } = gather(key);
    const { owner, schedule } = snapshot;
    const decision = decide(snapshot);
    if (decision.do !== "launch" || owner === undefined || schedule?.ok !== true) return undefined;
    return candidateOf(owner, decision, schedule.schedule, c.lockPrefix);
  }

  return { reconcile, candidate };
}

interface World {
  key: Key;
  owner: LockedCronJob | undefined;
  record: LedgerRecord | undefined;
  snapshot: Snapshot;
}

async function carryOut(c: Context, w: World, d: Decision): Promise<StepResult> {
  const { key, owner, record, snapshot: s } = w;
  if (d.do === "initLedger") return initLedger(c, key);
  if (d.do === "dropFinalizer") return runs.dropFinalizer(c, key, owner, d);
  if (d.do === "nothing") return decideAgain("nothing");

  const ledger = s.ledger.state === "present" ? s.ledger.ledger : undefined;
  if (record === undefined || ledger === undefined) return decideAgain("the ledger is gone");
  switch (d.do) {
    case "recordStarted":
      return runs.recordJob(c, key, record, ledger, d);
    case "settle":
      return runs.settleAttempts(c, key, record, ledger, d);
    case "stop":
      return runs.stop(c, key, owner, record, ledger, d, d);
    case "lookForJob":
      return runs.lookForJob(c, key, owner, record, ledger, d);
    case "finish":
      return runs.finish(c, key, owner, record, ledger, d);
    case "close":
      return runs.close(c, key, record, ledger, d);
    case "letLockGo":
      return letLockGo(c, key, record, ledger, d);
    case "abandon":
      return runs.abandon(c, key, owner, record, ledger, d, d);
    case "rebase":
      return ledgers.rebase(c, key, record, ledger, d);
    case "noteSuspend":
      return ledgers.noteSuspend(c, key, record, ledger);
    case "resume":
      return s.schedule === undefined
        ? decideAgain("the LockedCronJob is gone")
        : ledgers.resumeTicks(c, key, record, ledger, s.schedule);
    case "letLedgerGo":
      return ledgers.letGo(c, key, record, ledger);
    case "launch":
    case "send":
    case "takeOver":
    case "lockMutexes":
    case "miss":
    case "prune":
      return owner === undefined
        ? decideAgain("the LockedCronJob is gone")
        : carryOutFor(c, w, d, owner, record, ledger);
  }
}

async function carryOutFor(
  c: Context,
  { key, snapshot: s }: World,
  d: Extract<Decision, { do: "launch" | "send" | "takeOver" | "lockMutexes" | "miss" | "prune" }>,
  owner: LockedCronJob,
  record: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult> {
  if (d.do === "prune") return runs.prune(c, owner, d);
  if (d.do === "miss") return ledgers.recordMiss(c, owner, record, ledger, d, d);
  if (s.schedule?.ok !== true) return againIn(c, SOON_MS, "the schedule is not valid");
  const { schedule } = s.schedule;
  switch (d.do) {
    case "launch":
      return launch(c, owner, schedule, record, ledger, { ...d, rank: s.rank });
    case "takeOver":
      return takeOver(c, owner, schedule, record, ledger, d.run, s.rank);
    case "lockMutexes":
      return lockMutexes(c, owner, schedule, record, ledger, d.run, s.rank);
    case "send": {
      // Not straight from the claim: make sure that the attempt is still open before its only POST leaves.
      const live = await c.ledgers.read(key);
      if (live?.resourceVersion !== record.resourceVersion)
        return decideAgain("the ledger moved on");
      return send(c, owner, schedule, record, d.run, d.n, s.rank);
    }
  }
}
