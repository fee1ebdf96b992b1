/** Effects on a ledger as a whole: made, handed over, rebased, a missed tick recorded. */
import { keyOf } from "../api/names.ts";
import { EventReason, Reason } from "../api/reasons.ts";
import type { LockedCronJob } from "../api/types.ts";
import {
  MAX_COUNTED,
  scheduleText,
  ticksFrom,
  type Action,
  type Decision,
} from "../domain/decide/index.ts";
import type { JobView } from "../domain/job.ts";
import { hasUnsettled, miss, newLedger, type Ledger, type Run } from "../domain/ledger.ts";
import { parseSpec, specOfText, type ParseScheduleResult } from "../domain/schedule/index.ts";
import { casLost, entryOf, writeLedger } from "./cas.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import type { LedgerRecord } from "./ports.ts";

/** The longest that a lock of a namesake's run may live, as spec.lock.leaseSeconds allows. */
const NAMESAKE_LEASE_MS = 3_600_000;

type Of<K extends Action["do"]> = Extract<Action, { do: K }>;

/**
 * Makes the ledger. Everything it would have known is taken from what is there: the status, the Jobs. Reads are live,
 * so that a replica with an old cache does not begin the past anew.
 */
export async function initLedger(c: Context, key: string): Promise<StepResult> {
  const owner = await c.owners.read(key);
  if (owner === undefined) return againIn(c, 1_000, "the LockedCronJob is gone");
  // With none in the cache the create itself finds out whether there is one.
  const known = c.ledgers.cached(key);
  const current = known === undefined ? undefined : await c.ledgers.read(key);
  // Our cache was behind, and a newer release has written it since: it is not ours to write over.
  if (current?.contents.state === "newer") return decideAgain("the ledger cannot be read");
  const old = current?.contents.state === "present" ? current.contents.ledger : undefined;
  if (old?.owner === owner.metadata.uid) return decideAgain("exists");
  const jobs = (await c.jobs.list(key)).filter((j) => j.ownerUid === owner.metadata.uid);
  const status = parseTime(owner.status?.lastScheduleTime);
  const lastTick = Math.max(0, status, ...jobs.map((j) => j.tick ?? 0));
  const ledger = newLedger({
    owner: owner.metadata.uid,
    schedule: scheduleText(owner),
    anchor: Date.parse(owner.metadata.creationTimestamp),
    lastTick,
    ...(lastTick === 0 ? {} : { lastLaunched: lastTick }),
    token: Math.max(
      current?.token ?? 0,
      owner.status?.token ?? 0,
      ...jobs.map((j) => j.token ?? 0),
    ),
    runs: [...pendingOf(old), ...jobs.flatMap((j) => runOf(j) ?? [])],
  });
  try {
    await (current === undefined
      ? c.ledgers.create(owner, ledger)
      : c.ledgers.write(current, ledger, owner));
  } catch (error) {
    return casLost(c, key, error);
  }
  // A namesake's runs exclude nobody here: their locks must not hold up the first ticks until they run out.
  for (const run of old?.runs ?? []) {
    if (run.lockKey !== "") void c.locks.release(run.lockKey, run.lockValue, NAMESAKE_LEASE_MS);
  }
  return decideAgain("created");
}

/**
 * Lets go of a ledger that was deleted while its finalizer held it. Until then it has served on; the one that takes its
 * place has to know as much, and the Jobs of its ticks may be gone.
 */
export async function letGo(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult> {
  const owner = await c.owners.read(key);
  const lives =
    owner?.metadata.uid === ledger.owner && owner.metadata.deletionTimestamp === undefined;
  if (lives && !tells(owner, ledger)) {
    return againIn(c, 1_000, "the status does not tell yet what the ledger knows");
  }
  try {
    await c.ledgers.letGo(record);
    // CRASH WINDOW: without this one it is made from the status.
    if (lives) await c.ledgers.create(owner, ledger);
  } catch (error) {
    return casLost(c, key, error);
  }
  return decideAgain(lives ? "made anew" : "gone");
}

/** Whether a ledger that is made from the status knows what this one does. */
function tells({ status }: LockedCronJob, { token, lastLaunched }: Ledger): boolean {
  return (
    (status?.token ?? 0) === token && parseTime(status?.lastScheduleTime) === (lastLaunched ?? 0)
  );
}

/** A namesake's runs of which a POST may still arrive: to forget them would let their finalizers go too early. */
function pendingOf(old: Ledger | undefined): Run[] {
  return (old?.runs ?? [])
    .filter(hasUnsettled)
    .map((r) => ({ ...r, of: r.of ?? old?.owner ?? "" }));
}

/** A run as its Job tells of it; finished ones are history. */
function runOf(job: JobView): Run | undefined {
  const { tick, runId, token, lockKey, lockValue, attempt = 1 } = job;
  if (job.outcome !== undefined && !job.hasLaunchFinalizer) return undefined;
  if (tick === undefined || runId === undefined || token === undefined) return undefined;
  return {
    tick,
    runId,
    token,
    jobName: job.name,
    lockKey: lockKey ?? "",
    lockValue: lockValue ?? "",
    attempts: [{ n: attempt, by: "unknown/rebuilt", settled: true }],
    why: Reason.LedgerMissing,
    jobUID: job.uid,
    ...(job.lock === undefined ? {} : { lock: job.lock, lockedAt: job.createdAt }),
  };
}

/** An edited schedule: ticks count from now on. What was due by the old one and did not run is recorded. */
export async function rebase(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  action: Of<"rebase">,
): Promise<StepResult> {
  // ORDER: a replica whose cache is behind the edit would take the schedule back and skip what was due meanwhile.
  const owner = await c.owners.read(key);
  if (owner?.metadata.uid !== ledger.owner || scheduleText(owner) !== action.schedule) {
    return againIn(c, 1_000, "our copy of the schedule is behind");
  }
  const old = parseSpec(specOfText(ledger.schedule) ?? {}, key);
  const from = ticksFrom(ledger);
  const edited: Ledger = { ...ledger, schedule: action.schedule };
  if (owner.spec.onScheduleChange === "CatchUp") {
    return (await writeLedger(c, key, record, edited)) ?? decideAgain("rebased");
  }
  const why = "due by the old schedule when it was edited";
  const { next, count } = fromNow(c, edited, old, from, Reason.ScheduleChanged, why);
  const lost = await writeLedger(c, key, record, next);
  if (lost !== undefined) return lost;
  if (count > 0) c.observe.missed({ key, reason: Reason.ScheduleChanged, count });
  return decideAgain("rebased");
}

/** Ticks count from now on; those since `from` are recorded as missed. */
function fromNow(
  c: Context,
  ledger: Ledger,
  calendar: ParseScheduleResult,
  from: number,
  reason: Reason,
  message: string,
): { next: Ledger; count: number } {
  const now = c.clock.now();
  const next = { ...ledger, anchor: now };
  const last = calendar.ok ? calendar.schedule.lastFire(from, now) : null;
  if (!calendar.ok || last === null) return { next, count: 0 };
  const count = calendar.schedule.countFires(from, now, MAX_COUNTED);
  return {
    next: miss(next, last, count, entryOf(c, last, "Missed", reason, message)),
    count,
  };
}

/** Marks it as suspended. */
export async function noteSuspend(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult> {
  // ORDER: by a copy that is behind a resumption the mark would be set again.
  const owner = await c.owners.read(key);
  if (owner?.metadata.uid !== ledger.owner || owner.spec.suspend !== true) {
    return againIn(c, 1_000, "our copy of the spec is behind");
  }
  return (
    (await writeLedger(c, key, record, { ...ledger, suspended: true })) ?? decideAgain("suspended")
  );
}

/** Takes the mark back. With onResume FromNow, what was due meanwhile is recorded and does not run. */
export async function resumeTicks(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  calendar: ParseScheduleResult,
): Promise<StepResult> {
  const owner = await c.owners.read(key);
  if (owner?.metadata.uid !== ledger.owner || owner.spec.suspend === true) {
    return againIn(c, 1_000, "our copy of the spec is behind");
  }
  const { suspended: _, ...resumed } = ledger;
  if (owner.spec.onResume !== "FromNow") {
    return (await writeLedger(c, key, record, resumed)) ?? decideAgain("resumed");
  }
  const why = "due while it was suspended, and onResume is FromNow";
  const { next, count } = fromNow(c, resumed, calendar, ticksFrom(ledger), Reason.Suspended, why);
  const lost = await writeLedger(c, key, record, next);
  if (lost !== undefined) return lost;
  if (count > 0) c.observe.missed({ key, reason: Reason.Suspended, count });
  return decideAgain("resumed");
}

export async function recordMiss(
  c: Context,
  owner: LockedCronJob,
  record: LedgerRecord,
  ledger: Ledger,
  action: Of<"miss">,
  said: Pick<Decision, "reason" | "message" | "event">,
): Promise<StepResult> {
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  const entry = entryOf(c, action.tick, "Missed", said.reason, said.message);
  const lost = await writeLedger(c, key, record, miss(ledger, action.tick, action.count, entry));
  if (lost !== undefined) return lost;
  c.observe.missed({ key, reason: said.reason, count: action.count });
  const { type, reason, message } = said.event ?? {
    type: "Warning",
    reason: EventReason.MissSchedule,
    message: `Missed scheduled time to start a job: ${new Date(action.tick).toUTCString()}`,
  };
  c.events.event(owner, type, reason, message);
  return decideAgain("missed");
}

function parseTime(text: string | undefined): number {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? 0 : ms;
}
