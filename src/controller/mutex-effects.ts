/**
 * A claimed run takes its mutexes and is granted its first attempt. What holds (docs/adr/0011-mutexes.md):
 *
 *   claimed, waiting ── fences taken, in order ── GRANTED: compare-and-set on the ledger ── POST ── … ── over ── fences freed
 *
 * An attempt, which authorises a POST, exists only after every fence was seen to name this run; a fence is freed only after
 * the ledger says that the run is over, and then no attempt can be added any more. Any replica may do each step again:
 * the fence names the run, not the replica.
 */
import { keyOf } from "../api/names.ts";
import { EventReason, Reason } from "../api/reasons.ts";
import type { LockedCronJob } from "../api/types.ts";
import { grant, keepWaiting } from "../domain/ledger-locks.ts";
import { findRun, type Ledger, type Run } from "../domain/ledger.ts";
import { holderOf, leaseMsOf, type Waiting } from "../domain/lock-terms.ts";
import type { Schedule } from "../domain/schedule/index.ts";
import { hasReason, isUnknown } from "../kube/errors.ts";
import { casLost, entryOf } from "./cas.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import { send } from "./launch.ts";
import type { LedgerRecord, MutexRecord } from "./ports.ts";
import { abandon } from "./run-effects.ts";

interface Kept {
  mutex: string;
  reason: Reason;
  message: string;
}

export async function lockMutexes(
  c: Context,
  owner: LockedCronJob,
  schedule: Schedule,
  record: LedgerRecord,
  ledger: Ledger,
  run: Run,
  rank: number,
): Promise<StepResult> {
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  const { waiting } = run;
  if (waiting === undefined) return decideAgain("it waits no more");
  const kept = (await peek(c, key, run)) ?? (await lockInRedis(c, owner, run));
  if (kept !== undefined) return keptWaiting(c, key, owner, record, ledger, run, waiting, kept);

  let token: number;
  try {
    token = await takeFences(c, key, ledger, run);
  } catch (error) {
    unlockInRedis(c, run);
    return fenceLost(c, run, error);
  }
  // CRASH WINDOW fenced -> granted: the fences name the run, and any replica goes on with it or gives it up.
  await c.onStep("fenced", key);
  const granted = grant(ledger, run.runId, c.process, token);
  let written: LedgerRecord;
  try {
    written = await c.ledgers.write(record, granted);
  } catch (error) {
    return casLost(c, key, error);
  }
  c.observe.mutexWait({ key, outcome: "taken", ms: c.clock.now() - waiting.since });
  // CRASH WINDOW granted -> created: as after any claim, the attempt is taken over.
  await c.onStep("granted", key);
  return send(c, owner, schedule, written, findRun(granted, run.runId) as Run, 1, rank);
}

/** Looks before anything is taken, so that a run which has to wait for one mutex keeps nobody from another. */
async function peek(c: Context, key: string, run: Run): Promise<Kept | undefined> {
  const holder = holderOf(key, run.lockValue);
  for (const mutex of run.lock?.mutexes ?? []) {
    const cached = c.mutexes.fences.cached(mutex);
    const free = cached !== undefined && !cached.foreign && (cached.holder ?? holder) === holder;
    const fence = free ? cached : await c.mutexes.fences.read(mutex);
    if (fence?.foreign === true) {
      const message = `the Lease of mutex ${mutex} is not of this operator: rename the mutex, or delete the Lease`;
      return { mutex, reason: Reason.MutexClash, message };
    }
    if (fence?.holder === undefined || fence.holder === holder) continue;
    if (!(await c.mutexes.isOver(fence.holder))) {
      const message = `mutex ${mutex} is held by ${fence.holder.split("#")[0]}`;
      return { mutex, reason: Reason.MutexBusy, message };
    }
    // Its holder was over and nobody has freed it: he died in between.
    await c.mutexes.free(fence).catch(() => undefined);
  }
  return undefined;
}

/** All or none. In Redis the mutexes exclude whoever else uses them: other clusters, people's scripts. */
async function lockInRedis(c: Context, owner: LockedCronJob, run: Run): Promise<Kept | undefined> {
  const leaseMs = leaseMsOf(run.lock);
  const mutexes = run.lock?.mutexes ?? [];
  void c.locks.tryAcquire(run.lockKey, run.lockValue, leaseMs);
  const elections = await Promise.all(
    mutexes.map((mutex) => c.locks.tryAcquire(c.mutexes.lockKey(mutex), run.lockValue, leaseMs)),
  );
  const held = mutexes[elections.findIndex(({ outcome }) => outcome === "held")];
  const unknown = mutexes[elections.findIndex(({ outcome }) => outcome === "noQuorum")];
  if (held !== undefined) {
    unlockInRedis(c, run);
    const message = `mutex ${held} is held in Redis, by a run that has just ended or by somebody outside of the cluster`;
    return { mutex: held, reason: Reason.MutexBusy, message };
  }
  if (unknown !== undefined && owner.spec.lock?.onQuorumLoss === "Wait") {
    unlockInRedis(c, run);
    const message = `no majority of Redis nodes for mutex ${unknown}, and lock.onQuorumLoss is Wait`;
    return { mutex: unknown, reason: Reason.NoQuorum, message };
  }
  return undefined;
}

function unlockInRedis(c: Context, run: Run): void {
  const leaseMs = leaseMsOf(run.lock);
  for (const mutex of run.lock?.mutexes ?? []) {
    void c.locks.release(c.mutexes.lockKey(mutex), run.lockValue, leaseMs);
  }
}

/**
 * Takes every fence, in the one order that all keep, and returns the run's token: higher than any that was given for this
 * LockedCronJob or for any of its mutexes, and told to all of their fences before it is given. (The ticket of a Lamport
 * clock; L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", 1978.)
 */
async function takeFences(c: Context, key: string, ledger: Ledger, run: Run): Promise<number> {
  const holder = holderOf(key, run.lockValue);
  const { fences } = c.mutexes;
  const base = run.token === ledger.token ? run.token : ledger.token + 1;
  const taken: MutexRecord[] = [];
  for (const mutex of run.lock?.mutexes ?? []) {
    const fence = fences.cached(mutex);
    if (fence?.holder === holder) taken.push(fence);
    else if (fence?.holder !== undefined) throw new MutexTaken(mutex);
    else {
      const token = Math.max((fence?.token ?? 0) + 1, base);
      taken.push(await fences.write(mutex, fence, { holder, token }));
    }
  }
  const token = Math.max(base, ...taken.map((fence) => fence.token));
  for (const fence of taken) {
    if (fence.token < token) await fences.write(fence.mutex, fence, { holder, token });
  }
  return token;
}

/** Somebody else was first between the look and the taking. */
class MutexTaken extends Error {}

async function fenceLost(c: Context, run: Run, error: unknown): Promise<StepResult> {
  const raced =
    error instanceof MutexTaken ||
    hasReason(error, "Conflict", "AlreadyExists", "NotFound") ||
    isUnknown(error);
  if (!raced) return { next: "retry", error, outcome: "a fence was not written" };
  try {
    for (const mutex of run.lock?.mutexes ?? []) await c.mutexes.fences.read(mutex);
  } catch (reading) {
    return { next: "retry", error: reading, outcome: "a fence could not be read" };
  }
  return decideAgain("a fence has moved on");
}

/** It says so once for each mutex that it waits for, looks again after a while, and gives up when its time is over. */
async function keptWaiting(
  c: Context,
  key: string,
  owner: LockedCronJob,
  record: LedgerRecord,
  ledger: Ledger,
  run: Run,
  waiting: Waiting,
  kept: Kept,
): Promise<StepResult> {
  const now = c.clock.now();
  if (now >= waiting.until) {
    c.observe.mutexWait({ key, outcome: "gaveUp", ms: now - waiting.since });
    const seconds = Math.round((now - waiting.since) / 1000);
    const message = `${kept.message}; given up after ${seconds} s, as lock.waitSeconds says`;
    // What somebody asked for is no tick of the schedule.
    const action = { do: "abandon", run, missed: run.manual === undefined } as const;
    return abandon(c, key, owner, record, ledger, action, { reason: kept.reason, message });
  }
  if (waiting.on?.mutex !== kept.mutex || waiting.on.reason !== kept.reason) {
    const entry = entryOf(c, run.tick, "Waiting", kept.reason, kept.message);
    try {
      await c.ledgers.write(record, keepWaiting(ledger, run.runId, kept, entry));
    } catch (error) {
      return casLost(c, key, error);
    }
    c.observe.mutexBusy({ key, mutex: kept.mutex });
    const reason =
      kept.reason === Reason.MutexClash ? EventReason.MutexClash : EventReason.MutexBusy;
    const type = reason === EventReason.MutexClash ? "Warning" : "Normal";
    c.events.event(owner, type, reason, `Job ${run.jobName} waits: ${kept.message}`);
  }
  const pauseMs = Math.max(1, Math.min(waiting.retryMs, waiting.until - now));
  return againIn(c, pauseMs, `waits for mutex ${kept.mutex}`);
}
