import type { LockedCronJob } from "../../api/types.ts";
import type { JobView } from "../job.ts";
import type { Ledger } from "../ledger.ts";

/**
 * The finished Jobs beyond the history limits, oldest first. Jobs that the ledger still counts as runs, or that bear the
 * launch finalizer, are not history yet.
 */
export function beyondHistory(
  owner: LockedCronJob,
  ledger: Ledger,
  jobs: readonly JobView[],
): JobView[] {
  const finished = jobs
    .filter(
      (j) =>
        j.ownerUid === owner.metadata.uid &&
        j.outcome !== undefined &&
        !j.deleting &&
        !j.hasLaunchFinalizer &&
        !ledger.runs.some((r) => r.jobName === j.name),
    )
    .toSorted((a, b) => a.createdAt - b.createdAt || a.name.localeCompare(b.name));
  const oldest = (outcome: JobView["outcome"], limit: number): JobView[] => {
    const of = finished.filter((j) => j.outcome === outcome);
    return of.slice(0, Math.max(0, of.length - limit));
  };
  return [
    ...oldest("Complete", owner.spec.successfulJobsHistoryLimit ?? 3),
    ...oldest("Failed", owner.spec.failedJobsHistoryLimit ?? 1),
  ];
}
