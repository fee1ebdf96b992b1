import { EventReason, Reason } from "../../api/reasons.ts";
import type { JobView } from "../job.ts";
import type { Run } from "../ledger.ts";
import type { Decision, Snapshot, Wait } from "./types.ts";

/** A stray finalizer waits this long, so that a ledger which is newer than our cache can arrive, ms. */
const STRAY_AFTER_MS = 2_000;

/** Jobs that bear our finalizer though the ledger knows no such run: it ended, or went with its LockedCronJob. */
export function decideStrays(s: Snapshot, runs: readonly Run[], wait: Wait): Decision | undefined {
  for (const job of s.jobs) {
    if (!job.hasLaunchFinalizer || runs.some((r) => r.runId === job.runId)) continue;
    const at = job.createdAt + STRAY_AFTER_MS + s.standByMs;
    if (s.now >= at) return dropFinalizer(job, true, "no run of the ledger knows it any more");
    wait(at);
  }
  return undefined;
}

/** A Job of the LockedCronJob's that runs and that no run of the ledger knows: said as native CronJob does, no more. */
export function unexpectedJob(s: Snapshot, runs: readonly Run[], wait: Wait): Decision["event"] {
  if (s.rank > 0) return undefined;
  for (const job of s.jobs) {
    if (job.outcome !== undefined || job.deleting || job.ownerUid !== s.owner?.metadata.uid)
      continue;
    if (runs.some((r) => r.runId === job.runId)) continue;
    const at = job.createdAt + STRAY_AFTER_MS;
    if (s.now >= at) {
      return {
        reason: EventReason.UnexpectedJob,
        type: "Warning",
        message: `Saw a job that the controller did not create or forgot: ${job.name}`,
        once: `unexpected ${job.uid}`,
      };
    }
    wait(at);
  }
  return undefined;
}

export function dropFinalizer(job: JobView, stray: boolean, why: string): Decision {
  return {
    do: "dropFinalizer",
    job,
    stray,
    reason: Reason.FinalizerPending,
    message: `drop the launch finalizer of Job ${job.name}: ${why}`,
  };
}
