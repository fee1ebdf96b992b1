/**
 * The launch of one tick: elect, CLAIM, create. The order of the effects in this file is what the guarantees rest on;
 * the crash windows between them are marked, and test/controller kills the process in each.
 */
import { EventReason, Reason } from "../api/reasons.ts";
import { keyOf } from "../api/names.ts";
import type { LockedCronJob } from "../api/types.ts";
import { backoffMs, pauseWhenLateMs } from "../domain/backoff.ts";
import { claim } from "../domain/claim.ts";
import { buildJob, occasionOf, type JobView } from "../domain/job.ts";
import { addAttempt, findRun, recordRefusal, type Ledger, type Run } from "../domain/ledger.ts";
import { locksOf, mutexesOf } from "../domain/lock-terms.ts";
import type { Manual } from "../domain/manual.ts";
import type { Schedule } from "../domain/schedule/index.ts";
import { isKubeError } from "../kube/errors.ts";
import { casLost, supersededBy } from "./cas.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import { candidateOf } from "./elections.ts";
import type { LedgerRecord } from "./ports.ts";
import { putLabel } from "./run-effects.ts";
import { isStuck } from "./stuck-locks.ts";

/** After a lost election, at the least: about one round of the winner's claim, ms. */
const HELD_RETRY_MS = 60;
/** Between looks for a quorum when the policy is to wait for it, ms. */
const QUORUM_RETRY_MS = 1_000;
/** Between looks whether this process holds its membership Lease, ms. */
const MEMBER_RETRY_MS = 1_000;
const REFUSAL_BACKOFF = { baseMs: 1_000, maxMs: 300_000 };

export interface Tick {
  tick: number;
  missed: number;
  /** Somebody asked for it. */
  manual?: Manual;
  /** It excludes no other run and is excluded by none. */
  beside?: boolean;
  reason: Reason;
  message: string;
  rank: number;
}

/** Steps 3 to 5 of the launch protocol for a tick that is due and that the policy allows. */
export async function launch(
  c: Context,
  owner: LockedCronJob,
  schedule: Schedule,
  record: LedgerRecord,
  ledger: Ledger,
  t: Tick,
): Promise<StepResult> {
  const candidate = candidateOf(owner, t, schedule, c.lockPrefix);
  const { key, runId, lockKey } = candidate;
  const mutexes = mutexesOf(owner, c.sharedMutexNamespaces);
  if (!mutexes.ok) return againIn(c, QUORUM_RETRY_MS, mutexes.message);

  // ORDER: no process is named in a ledger before it has held its Lease. By that Lease its death is proven.
  if (!(await c.members.confirm())) return notAMember(c);
  const begun = c.clock.monotonic();
  const election = await c.elections.elect(candidate);
  const { lockValue, leaseMs } = election;
  c.observe.elected({
    key,
    tick: t.tick,
    outcome: election.outcome,
    ms: c.clock.monotonic() - begun,
  });
  const stuck = election.outcome === "held" && (await isStuck(c, owner, record, ledger, lockKey));
  if (election.outcome !== "held") c.stuckLocks.free(lockKey);
  else if (!stuck) {
    // The winner's claim wakes us. Without news of it (cut off from the API server, say) we ask less and less often; and no
    // less often than a lock of a dead winner would run out.
    const pauseMs = pauseWhenLateMs(c.clock.now() - schedule.dueAt(t.tick), HELD_RETRY_MS, leaseMs);
    return againIn(c, pauseMs * (0.5 + c.random()), "another replica is elected");
  }
  if (election.outcome !== "won" && owner.spec.lock?.onQuorumLoss === "Wait") {
    return againIn(c, QUORUM_RETRY_MS, "no quorum: waiting, as lock.onQuorumLoss says");
  }
  const giveUp = (): void => {
    if (election.outcome === "won") void c.locks.release(lockKey, lockValue, leaseMs);
  };
  // CRASH WINDOW elected -> claimed: nothing happened yet; the lock's short lease runs out and another one is elected.
  await c.onStep("elected", key);
  if (election.outcome === "won" && !election.isValid()) {
    giveUp();
    return decideAgain("the election ran out before the claim");
  }

  const claimed = claim(ledger, {
    tick: t.tick,
    runId,
    jobName: candidate.jobName,
    lockKey,
    lockValue,
    by: c.process,
    why: t.reason,
    missed: t.missed,
    manual: t.manual,
    decisions: supersededBy(c, t),
    locks: locksOf(owner, mutexes.mutexes, {
      dueAt: t.manual === undefined ? schedule.dueAt(t.tick) : undefined,
      now: c.clock.now(),
      by: c.process,
    }),
  });
  let written: LedgerRecord;
  try {
    written = await c.ledgers.write(record, claimed);
  } catch (error) {
    giveUp();
    return casLost(c, key, error);
  }
  if (t.missed > 0) c.observe.missed({ key, reason: Reason.Superseded, count: t.missed });
  // CRASH WINDOW claimed -> created: the claim says so, and any replica takes it over.
  await c.onStep("claimed", key);

  const run = findRun(claimed, runId) as Run;
  if (run.waiting !== undefined) return decideAgain("claimed; its mutexes are next");
  return send(c, owner, schedule, written, run, 1, t.rank);
}

/**
 * EXACTLY ONE POST PER ATTEMPT: whatever comes of it, this attempt never leaves again. An unknown outcome is resolved by
 * looking for the Job and, if there is none, by a new attempt in the ledger.
 */
export async function send(
  c: Context,
  owner: LockedCronJob,
  schedule: Schedule,
  record: LedgerRecord,
  run: Run,
  n: number,
  rank: number,
): Promise<StepResult> {
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  // ORDER: before the attempt counts as sent. What cannot be built never leaves.
  const body = buildJob(owner, run, n, occasionOf(run, schedule));
  // ORDER: right before the POST. This process may have stood still since the claim, and been fenced meanwhile: then the
  // others do not wait for this POST, and the Job that it would have to meet may be gone.
  if (!(await c.members.confirm())) return notAMember(c);
  c.attempts.sending(run.runId, n);
  let job: JobView;
  try {
    job = await c.jobs.create(body);
  } catch (error) {
    return createFailed(c, owner, record, run, n, error);
  }
  c.attempts.answered(run.runId, n);
  c.observe.jobCreate("created");
  const dueAt = run.manual === undefined ? schedule.dueAt(run.tick) : run.tick;
  c.observe.launched({
    key,
    tick: run.tick,
    // What is launched again is as late as it is meant to be.
    latencyMs: run.manual?.kind === "backfill" ? undefined : c.clock.now() - dueAt,
    rank,
    runId: run.runId,
    token: run.token,
    attempt: n,
  });
  c.events.event(owner, "Normal", EventReason.SuccessfulCreate, `Created job ${job.name}`);
  // CRASH WINDOW created -> started: the finalizer keeps the Job, any replica records it.
  await c.onStep("created", key);
  return { next: "followUp", outcome: "created" };
}

/** An open claim that brought no Job: look for it, then authorise one more POST by compare-and-set, then send it. */
export async function takeOver(
  c: Context,
  owner: LockedCronJob,
  schedule: Schedule,
  record: LedgerRecord,
  ledger: Ledger,
  run: Run,
  rank: number,
): Promise<StepResult> {
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  // ORDER: look only after the ledger version was read that the compare-and-set below insists on.
  const job = await c.jobs.read(owner.metadata.namespace, run.jobName);
  if (job !== undefined) return found(c, owner, record, run, job);
  if (!(await c.members.confirm())) return notAMember(c);
  const next = addAttempt(ledger, run.runId, c.process);
  let written: LedgerRecord;
  try {
    written = await c.ledgers.write(record, next.ledger);
  } catch (error) {
    return casLost(c, key, error);
  }
  const before = run.attempts.at(-1)?.by;
  if (before !== undefined && before !== c.process) {
    c.observe.takeover();
    c.events.event(
      owner,
      "Normal",
      EventReason.TakenOver,
      `Took over the launch of job ${run.jobName} from ${before.split("/")[0]} (attempt ${next.n})`,
    );
  }
  await c.onStep("claimed", key);
  const fresh = findRun(next.ledger, run.runId) as Run;
  return send(c, owner, schedule, written, fresh, next.n, rank);
}

/** It may not send. Either the Lease can be renewed soon, or this process is about to end. */
function notAMember(c: Context): StepResult {
  return againIn(c, MEMBER_RETRY_MS, "this process cannot confirm its membership Lease");
}

async function createFailed(
  c: Context,
  owner: LockedCronJob,
  record: LedgerRecord,
  run: Run,
  n: number,
  error: unknown,
): Promise<StepResult> {
  if (!isKubeError(error) || error.outcome === "unknown") {
    c.observe.jobCreate("unknown");
    // From now on: it may have left at the last moment.
    c.attempts.sending(run.runId, n);
    return { next: "retry", error, outcome: "the answer was lost" };
  }
  if (error.status === 0 || error.status === 429) {
    // It surely never arrived, so this same attempt may still be sent.
    c.attempts.notSent(run.runId, n);
    return { next: "retry", error, outcome: "not sent" };
  }
  c.attempts.answered(run.runId, n);
  if (error.reason === "AlreadyExists") {
    const job = await c.jobs.read(owner.metadata.namespace, run.jobName);
    // Gone again: the next decision makes a new attempt.
    if (job === undefined) return decideAgain("the job of that name has just gone");
    return found(c, owner, record, run, job, n);
  }
  c.observe.jobCreate("refused");
  c.events.event(
    owner,
    "Warning",
    EventReason.FailedCreate,
    `Error creating job: ${error.message}`,
  );
  return refuse(c, owner, record, run, n, { reason: error.reason, message: error.message });
}

/** A Job of the run's name is there. Ours: the next decision records it. Somebody else's: the tick waits and says so. */
function found(
  c: Context,
  owner: LockedCronJob,
  record: LedgerRecord,
  run: Run,
  job: JobView,
  /** The attempt whose POST met it; undefined when a look did. */
  answered?: number,
): Promise<StepResult> | StepResult {
  if (job.runId === run.runId && job.ownerUid === owner.metadata.uid) {
    c.observe.jobCreate("exists");
    const key = keyOf(owner.metadata.namespace, owner.metadata.name);
    if (!job.labelled) return putLabel(c, key, owner, job);
    return decideAgain("the job exists");
  }
  const message = `Job ${job.name} exists and is not of this LockedCronJob: rename or delete it`;
  c.observe.jobCreate("foreign");
  c.events.event(owner, "Warning", EventReason.ForeignJob, message);
  const refusal = { reason: Reason.ForeignJob, message };
  return refuse(c, owner, record, run, answered, refusal);
}

async function refuse(
  c: Context,
  owner: LockedCronJob,
  record: LedgerRecord,
  run: Run,
  n: number | undefined,
  refusal: { reason: string; message: string },
): Promise<StepResult> {
  const key = keyOf(owner.metadata.namespace, owner.metadata.name);
  if (record.contents.state !== "present") return decideAgain("refused");
  const count = (run.refusal?.count ?? 0) + 1;
  const retryAt = c.clock.now() + backoffMs(count, REFUSAL_BACKOFF.baseMs, REFUSAL_BACKOFF.maxMs);
  try {
    await c.ledgers.write(
      record,
      recordRefusal(record.contents.ledger, run.runId, n, { ...refusal, retryAt }),
    );
  } catch (error) {
    return casLost(c, key, error);
  }
  return decideAgain(`refused: ${refusal.reason}`);
}
