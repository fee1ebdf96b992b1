/** Effects on one run after its launch: recorded, settled, looked for, ended; and its Job's finalizer dropped. */
import { NAME_LABEL, splitKey } from "../api/names.ts";
import { EventReason, Reason } from "../api/reasons.ts";
import type { LockedCronJob } from "../api/types.ts";
import type { Action } from "../domain/decide/index.ts";
import type { JobView } from "../domain/job.ts";
import {
  findRun,
  hasUnsettled,
  recordStarted,
  settle,
  stopRun,
  type Ledger,
} from "../domain/ledger.ts";
import { closeRun, endRun } from "../domain/ledger-end.ts";
import { isKubeError } from "../kube/errors.ts";
import { entryOf, writeLedger } from "./cas.ts";
import { againIn, decideAgain, type Context, type StepResult } from "./context.ts";
import type { LedgerRecord } from "./ports.ts";
import { keptUntilOf, release } from "./run-locks.ts";

type Of<K extends Action["do"]> = Extract<Action, { do: K }>;

/** How soon to look again for pods that outlive their Job, should their watch stand still, ms. */
const PODS_POLL_MS = 5_000;

/** Records that the tick has its Job, and in the same write every attempt of which nothing can come any more. */
export async function recordJob(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  { run, jobUID, n, names }: Of<"recordStarted">,
): Promise<StepResult> {
  const over = run.attempts
    .filter((a) => !a.settled && ["past", "unsent"].includes(c.attempts.fateOf(run, a)))
    .map((a) => a.n);
  const by = run.attempts.find((a) => a.n === n)?.by.split("/")[0] ?? c.replica;
  const entry = {
    ...entryOf(
      c,
      run.tick,
      "Launched",
      n > 1 ? Reason.TakeOver : run.why,
      `Job ${run.jobName} created${n > 1 ? ` by attempt ${n}` : ""}${names.length > 0 ? ` (schedule ${names.join(", ")})` : ""}`,
    ),
    replica: by,
  };
  const next = settle(recordStarted(ledger, run.runId, jobUID, n, entry), run.runId, over);
  const lost = await writeLedger(c, key, record, next);
  if (lost !== undefined) return lost;
  // CRASH WINDOW started -> finalizer dropped: the ledger says that it may go, any replica drops it.
  await c.onStep("started", key);
  return decideAgain("started");
}

export async function settleAttempts(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  { run, ns }: Of<"settle">,
): Promise<StepResult> {
  return (
    (await writeLedger(c, key, record, settle(ledger, run.runId, ns))) ?? decideAgain("settled")
  );
}

export async function dropFinalizer(
  c: Context,
  key: string,
  owner: LockedCronJob | undefined,
  { job, stray }: Of<"dropFinalizer">,
): Promise<StepResult> {
  if (stray) {
    // Our cache may be behind: only the ledger as it is now can say that no POST is pending.
    const contents = (await c.ledgers.read(key))?.contents;
    if (contents?.state === "newer") return decideAgain("the ledger cannot be read");
    // ORDER: a lost ledger is made anew first. Until then the Job may be all that is known of its tick.
    const alive = owner !== undefined && owner.metadata.deletionTimestamp === undefined;
    if (contents === undefined && alive) return decideAgain("the ledger is lost");
    const run =
      contents?.state === "present" && job.runId !== undefined
        ? findRun(contents.ledger, job.runId)
        : undefined;
    if (run !== undefined && (run.jobUID === undefined || hasUnsettled(run))) {
      return decideAgain("the ledger knows it after all");
    }
  }
  await c.jobs.dropFinalizer(job);
  await c.onStep("finalizerDropped", key);
  return decideAgain("dropped");
}

/** The cache does not have the run's Job: it is late, or the Job is gone. Only a live answer ends a run. */
export async function lookForJob(
  c: Context,
  key: string,
  owner: LockedCronJob | undefined,
  record: LedgerRecord,
  ledger: Ledger,
  { run }: Of<"lookForJob">,
): Promise<StepResult> {
  const { namespace } = splitKey(key);
  const job = await c.jobs.read(namespace, run.jobName);
  if (job !== undefined && job.uid === run.jobUID) {
    if (!job.labelled) return putLabel(c, key, owner, job);
    return againIn(c, 1_000, "it is there, the cache is behind");
  }
  const uid = run.jobUID ?? "";
  if (await c.jobs.hasLivePods(namespace, uid)) {
    return againIn(c, PODS_POLL_MS, "the job is gone, but pods of it live");
  }
  const said = run.stop ?? {
    reason: Reason.JobGone,
    message: `Job ${run.jobName} was deleted before it finished`,
  };
  const ended = {
    decision: entryOf(c, run.tick, "Finished", said.reason, said.message),
    ...keptUntilOf(c, run),
  };
  const lost = await writeLedger(c, key, record, endRun(ledger, run.runId, ended));
  if (lost !== undefined) return lost;
  if (ended.keptUntil === undefined) await release(c, key, ledger, run);
  if (owner !== undefined && run.stop === undefined) {
    c.events.event(
      owner,
      "Normal",
      EventReason.MissingJob,
      `Active job went missing: ${run.jobName}`,
    );
  }
  return decideAgain("gone");
}

/** Somebody took the label off a Job of ours. Without it no watch tells of its end, and its run would never be over. */
export async function putLabel(
  c: Context,
  key: string,
  owner: LockedCronJob | undefined,
  job: JobView,
): Promise<StepResult> {
  await c.jobs.putLabel(job, splitKey(key).name);
  if (owner !== undefined) {
    const message = `Job ${job.name} had lost its label ${NAME_LABEL}, by which its end is seen: put back`;
    c.events.event(owner, "Warning", EventReason.LabelRestored, message);
  }
  return againIn(c, 1_000, "its label was put back");
}

/**
 * ORDER: the ledger says first that the run is over, its lock goes after. The other way round a next run could find no
 * trace of it. A run whose attempts are not all settled stays, ended, and keeps its Job by the finalizer.
 */
export async function finish(
  c: Context,
  key: string,
  owner: LockedCronJob | undefined,
  record: LedgerRecord,
  ledger: Ledger,
  { run, job }: Of<"finish">,
): Promise<StepResult> {
  if (await c.jobs.hasLivePods(job.namespace, job.uid)) {
    return againIn(c, PODS_POLL_MS, "pods of the finished job still live");
  }
  const at = job.finishedAt ?? c.clock.now();
  const { atMostSeconds } = run.lock ?? {};
  const tooLong = atMostSeconds !== undefined && job.failure === "DeadlineExceeded";
  const entry = tooLong
    ? entryOf(
        c,
        run.tick,
        "Finished",
        Reason.AtMostExceeded,
        `Job ${job.name} was ended after lock.atMostSeconds (${atMostSeconds})`,
      )
    : entryOf(c, run.tick, "Finished", Reason.JobFinished, `Job ${job.name}: ${job.outcome}`);
  const kept = keptUntilOf(c, run);
  const ended = endRun(ledger, run.runId, {
    decision: entry,
    ...kept,
    ...(job.outcome === "Complete" ? { success: at } : { failure: at }),
  });
  const lost = await writeLedger(c, key, record, ended);
  if (lost !== undefined) return lost;
  if (kept.keptUntil === undefined) await release(c, key, ledger, run, job.createdAt);
  if (owner !== undefined) {
    c.events.event(
      owner,
      "Normal",
      EventReason.SawCompletedJob,
      `Saw completed job: ${job.name}, condition: ${job.outcome}`,
    );
  }
  return decideAgain(`finished: ${job.outcome}`);
}

/** An ended run whose Job may go, or is gone. */
export async function close(
  c: Context,
  key: string,
  record: LedgerRecord,
  ledger: Ledger,
  { run }: Of<"close">,
): Promise<StepResult> {
  const lost = await writeLedger(c, key, record, closeRun(ledger, run.runId));
  return lost ?? decideAgain("closed");
}

/** Ends a claim that never got a Job, and never will: every attempt is settled first, in the same write. */
export async function abandon(
  c: Context,
  key: string,
  owner: LockedCronJob | undefined,
  record: LedgerRecord,
  ledger: Ledger,
  { run, missed }: Of<"abandon">,
  said: { reason: Reason; message: string },
): Promise<StepResult> {
  const { namespace } = splitKey(key);
  // ORDER: look after the ledger was read. An attempt that was answered may have been answered with "created".
  const job = await c.jobs.read(namespace, run.jobName);
  if (job?.runId === run.runId) return decideAgain("the job exists");
  const all = settle(
    ledger,
    run.runId,
    run.attempts.map((a) => a.n),
  );
  const entry = entryOf(c, run.tick, "Missed", said.reason, said.message);
  const ended = endRun(all, run.runId, { decision: entry, missed: missed ? 1 : 0 });
  const lost = await writeLedger(c, key, record, ended);
  if (lost !== undefined) return lost;
  await release(c, key, ledger, run);
  if (missed) c.observe.missed({ key, reason: said.reason, count: 1 });
  if (missed && owner !== undefined) {
    c.events.event(owner, "Warning", EventReason.MissSchedule, said.message);
  }
  return decideAgain("abandoned");
}

/**
 * Ends a run before its time. It counts as active until no pod of it lives: the Job is deleted in the foreground, so that
 * its end is told by the watch.
 */
export async function stop(
  c: Context,
  key: string,
  owner: LockedCronJob | undefined,
  record: LedgerRecord,
  ledger: Ledger,
  { run, job }: Of<"stop">,
  said: { reason: Reason; message: string },
): Promise<StepResult> {
  // ORDER: the ledger says why before the Job goes, so that whoever finds it gone knows.
  if (run.stop === undefined) {
    const { reason, message } = said;
    const lost = await writeLedger(c, key, record, stopRun(ledger, run.runId, { reason, message }));
    if (lost !== undefined) return lost;
  }
  // CRASH WINDOW marked -> deleted: the mark says that it is to go, any replica deletes it.
  return (await remove(c, owner, job, "Foreground")) ?? decideAgain("stopped");
}

async function remove(
  c: Context,
  owner: LockedCronJob | undefined,
  job: JobView,
  propagation: "Background" | "Foreground",
): Promise<StepResult | undefined> {
  try {
    await c.jobs.delete(job, propagation);
  } catch (error) {
    const why = isKubeError(error) ? error.message : String(error);
    if (owner !== undefined) {
      c.events.event(owner, "Warning", EventReason.FailedDelete, `Deleted job: ${why}`);
    }
    return { next: "retry", error, outcome: "not deleted" };
  }
  if (owner !== undefined) {
    c.events.event(owner, "Normal", EventReason.SuccessfulDelete, `Deleted job ${job.name}`);
  }
  return undefined;
}

export async function prune(
  c: Context,
  owner: LockedCronJob,
  { jobs }: Of<"prune">,
): Promise<StepResult> {
  for (const job of jobs) {
    const failed = await remove(c, owner, job, "Background");
    if (failed !== undefined) return failed;
  }
  return decideAgain("pruned");
}
