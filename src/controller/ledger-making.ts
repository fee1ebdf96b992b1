/** How a ledger is made: for a new LockedCronJob, in the place of a namesake's, and when it was lost. */
import { EventReason, Reason } from "../api/reasons.ts";
import type { LockedCronJob, LockedCronJobStatus } from "../api/types.ts";
import { ledgerTroubleOf, scheduleText, type LedgerState } from "../domain/decide/index.ts";
import type { JobView } from "../domain/job.ts";
import { hasUnsettled, newLedger, type Ledger, type Run } from "../domain/ledger.ts";
import { hasReason } from "../kube/errors.ts";
import { askedBefore, parseTime, tickOf } from "./asked.ts";
import { casLost, writeLedger } from "./cas.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import type { LedgerRecord } from "./ports.ts";

/** The longest that a lock of a namesake's run may live, as spec.lock.leaseSeconds allows. */
const NAMESAKE_LEASE_MS = 3_600_000;
/** Between looks at a ledger that somebody has to mend, ms. */
const TROUBLE_MS = 30_000;

/**
 * Makes the ledger. Everything it would have known is taken from what is there: the status, the Jobs, and what this process
 * still knows of the one that was lost.
 *
 * ORDER: first the Lease is there, empty, then everything is read, then it is filled by compare-and-set. Read before, it
 * might be of a time before another ledger was made, served, and was deleted again.
 */
export async function initLedger(c: Context, key: string): Promise<StepResult> {
  const known = c.ledgers.cached(key);
  const current = (known === undefined ? undefined : await c.ledgers.read(key)) ?? "none";
  return current === "none" ? reserve(c, key) : fill(c, key, current);
}

async function fill(c: Context, key: string, current: LedgerRecord): Promise<StepResult> {
  // Our cache was behind, and a newer release has written it since: it is not ours to write over.
  if (current.contents.state === "newer") return decideAgain("the ledger cannot be read");
  const owner = await c.owners.read(key);
  if (owner === undefined) return againIn(c, 1_000, "the LockedCronJob is gone");
  const old = current.contents.state === "present" ? current.contents.ledger : undefined;
  if (old !== undefined && old.owner === owner.metadata.uid) {
    return c.ledgers.cached(key) === undefined
      ? putLabelsBack(c, key, owner, current, old)
      : decideAgain("exists");
  }
  const last = lastKnown(c, key, owner);
  const trouble = ledgerTroubleOf(current.contents);
  const lost = trouble === undefined ? undefined : sameVersion(c, key, current);
  if (trouble !== undefined && lost === undefined) {
    c.events.event(owner, "Warning", EventReason.LedgerUnreadable, trouble.message);
    return againIn(c, TROUBLE_MS, "the ledger is garbled while a POST may be on its way");
  }
  const jobs = (await c.jobs.list(key)).filter((j) => j.ownerUid === owner.metadata.uid);
  const runs = [...(lost?.runs ?? pendingOf(old)), ...jobs.flatMap((j) => runOf(j) ?? [])];
  const ledger = madeFrom({ owner, last, jobs, leaseToken: current.token, runs: unique(runs) });
  try {
    await c.ledgers.write(current, ledger, owner);
  } catch (error) {
    return casLost(c, key, error);
  }
  // A namesake's runs exclude nobody here: their locks must not hold up the first ticks until they run out.
  for (const run of old?.runs ?? []) {
    if (run.lockKey !== "") void c.locks.release(run.lockKey, run.lockValue, NAMESAKE_LEASE_MS);
  }
  return decideAgain("created");
}

async function reserve(c: Context, key: string): Promise<StepResult> {
  const owner = await c.owners.read(key);
  if (owner === undefined) return againIn(c, 1_000, "the LockedCronJob is gone");
  try {
    await c.ledgers.reserve(owner);
  } catch (error) {
    const lost = await casLost(c, key, error);
    if (!hasReason(error, "AlreadyExists") || c.ledgers.cached(key) !== undefined) return lost;
    const unseen = await c.ledgers.read(key);
    return unseen === undefined ? lost : fill(c, key, unseen);
  }
  return decideAgain("reserved");
}

/** Somebody took off the labels that our watches select by, so that it counts as gone. Each write puts them back. */
async function putLabelsBack(
  c: Context,
  key: string,
  owner: LockedCronJob,
  current: LedgerRecord,
  ledger: Ledger,
): Promise<StepResult> {
  const lost = await writeLedger(c, key, current, ledger);
  if (lost !== undefined) return lost;
  const message = "The Lease of the ledger had lost the labels by which it is seen: put back";
  c.events.event(owner, "Warning", EventReason.LabelRestored, message);
  return againIn(c, 1_000, "the ledger's labels were put back");
}

/** The ledger that was lost, as far as this process saw it; it may have gone on since. */
function lastKnown(c: Context, key: string, owner: LockedCronJob): Ledger | undefined {
  const last = c.ledgers.last(key)?.ledger;
  return last?.owner === owner.metadata.uid ? last : undefined;
}

/** The last that we read in this same Lease, if no tick was claimed in it since: then it knows of every pending POST. */
function sameVersion(c: Context, key: string, { uid, token }: LedgerRecord): Ledger | undefined {
  const last = c.ledgers.last(key);
  return last?.uid === uid && last.ledger.token === token ? last.ledger : undefined;
}

function madeFrom(o: {
  owner: LockedCronJob;
  last: Ledger | undefined;
  jobs: readonly JobView[];
  leaseToken: number;
  runs: Run[];
}): Ledger {
  const { owner, last, jobs, runs } = o;
  const launched = Math.max(
    parseTime(owner.status?.lastScheduleTime),
    last?.lastLaunched ?? 0,
    ...jobs.map(tickOf),
  );
  const base =
    last ??
    newLedger({
      owner: owner.metadata.uid,
      schedule: scheduleText(owner),
      anchor: Date.parse(owner.metadata.creationTimestamp),
      ...outcomesTold(owner.status),
    });
  return {
    ...base,
    ...askedBefore(owner, jobs, last),
    lastTick: Math.max(launched, decidedBy(last, runs)),
    ...(launched === 0 ? {} : { lastLaunched: launched }),
    token: Math.max(
      o.leaseToken,
      base.token,
      owner.status?.token ?? 0,
      ...jobs.map((j) => j.token ?? 0),
    ),
    runs,
  };
}

/** How runs ended: nothing depends on it, and nobody else knows. */
function outcomesTold({
  lastSuccessfulTime,
  lastFailureTime,
  consecutiveFailures,
}: LockedCronJobStatus = {}): Pick<Ledger, "lastSuccess" | "lastFailure" | "consecutiveFailures"> {
  const [lastSuccess, lastFailure] = [parseTime(lastSuccessfulTime), parseTime(lastFailureTime)];
  return {
    ...(lastSuccess === 0 ? {} : { lastSuccess }),
    ...(lastFailure === 0 ? {} : { lastFailure }),
    ...(consecutiveFailures === undefined ? {} : { consecutiveFailures }),
  };
}

/** Up to where the lost ledger had decided; not the ticks of claims that brought no Job, of which nothing else is known. */
function decidedBy(last: Ledger | undefined, kept: readonly Run[]): number {
  const open = (last?.runs ?? []).filter(
    (r) => r.jobUID === undefined && r.of === undefined && !kept.some((k) => k.runId === r.runId),
  );
  return Math.min(last?.lastTick ?? 0, ...open.map((r) => r.tick - 1));
}

/** A namesake's runs of which a POST may still arrive: to forget them would let their finalizers go too early. */
function pendingOf(old: Ledger | undefined): Run[] {
  return (old?.runs ?? [])
    .filter(hasUnsettled)
    .map((r) => ({ ...r, of: r.of ?? old?.owner ?? "" }));
}

function unique(runs: readonly Run[]): Run[] {
  return runs.filter((run, i) => runs.findIndex((r) => r.runId === run.runId) === i);
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
    ...(job.manual === undefined ? {} : { manual: job.manual }),
  };
}

/** The ledger as it concerns this owner: a namesake's counts as none, except that nobody is left to own it. */
export function ledgerFor(
  owner: LockedCronJob | undefined,
  record: LedgerRecord | undefined,
): LedgerState {
  if (record === undefined) return { state: "absent" };
  const { contents } = record;
  if (contents.state === "present" && owner !== undefined) {
    if (contents.ledger.owner !== owner.metadata.uid) return { state: "orphan", why: "namesake" };
  }
  return contents;
}
