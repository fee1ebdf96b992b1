import { expect, it } from "vitest";
import type { LockedCronJobSpec } from "../../src/api/types.ts";
import { beyondHistory } from "../../src/domain/decide/history.ts";
import type { JobView } from "../../src/domain/job.ts";
import { aJobView, aLedger, aLockedCronJob, aStartedRun, HOUR, NOON } from "../builders/objects.ts";

/** The i-th of several Jobs, each an hour younger than the one before. */
function finished(i: number, fields: Partial<JobView> = {}): JobView {
  return aJobView({
    name: `report-${i}`,
    uid: `job-${i}`,
    createdAt: NOON + i * HOUR,
    outcome: "Complete",
    hasLaunchFinalizer: false,
    ...fields,
  });
}

const failed = (i: number): JobView => finished(i, { outcome: "Failed" });

it.each<[situation: string, spec: Partial<LockedCronJobSpec>, jobs: JobView[], want: string[]]>([
  [
    "the oldest that succeeded go first",
    { successfulJobsHistoryLimit: 1 },
    [finished(3), finished(1), finished(2)],
    ["report-1", "report-2"],
  ],
  [
    "those that failed are counted on their own",
    { successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 1 },
    [finished(1), failed(2), finished(3), failed(4)],
    ["report-1", "report-2"],
  ],
  ["as many as the limit stay", { successfulJobsHistoryLimit: 2 }, [finished(1), finished(2)], []],
  [
    "none stays with a limit of nothing",
    { successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0 },
    [finished(1), failed(2)],
    ["report-1", "report-2"],
  ],
  [
    "of the same age the first by name goes",
    { successfulJobsHistoryLimit: 1 },
    [finished(2, { createdAt: NOON }), finished(1, { createdAt: NOON })],
    ["report-1"],
  ],
  [
    "what runs, bears the launch finalizer, is being deleted or is somebody else's is not history",
    { successfulJobsHistoryLimit: 0 },
    [
      finished(1, { outcome: undefined }),
      finished(2, { hasLaunchFinalizer: true }),
      finished(3, { deleting: true }),
      finished(4, { ownerUid: "owner-0" }),
    ],
    [],
  ],
])("%s", (_, spec, jobs, want) => {
  expect(beyondHistory(aLockedCronJob(spec), aLedger(), jobs).map((j) => j.name)).toEqual(want);
});

it("a Job that the ledger still counts as a run is not history", () => {
  const ledger = aLedger({ runs: [aStartedRun({ jobName: "report-1" })] });
  const owner = aLockedCronJob({ successfulJobsHistoryLimit: 0 });
  expect(beyondHistory(owner, ledger, [finished(1)])).toEqual([]);
});

it("without limits three that succeeded stay and one that failed, as with CronJob", () => {
  const {
    successfulJobsHistoryLimit: _,
    failedJobsHistoryLimit: __,
    ...spec
  } = aLockedCronJob().spec;
  const owner = { ...aLockedCronJob(), spec };
  const jobs = [1, 2, 3, 4].map((i) => finished(i)).concat([5, 6].map(failed));
  expect(beyondHistory(owner, aLedger(), jobs).map((j) => j.name)).toEqual([
    "report-1",
    "report-5",
  ]);
});
