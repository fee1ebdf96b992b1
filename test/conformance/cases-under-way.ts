/** Cases in which somebody does something meanwhile: edits, deletes, makes Jobs by hand, forbids. */
import { atOnce, BOTH, daily, dayBefore, DONE, job, LAUNCHED, never, type Case } from "./case.ts";
import type { Manifest } from "../crd/fixture.ts";
import { KEEP, REFUSE } from "./refusals.ts";

/** Half a year away. */
const edited = (m: Manifest, past: Date): void => {
  m.spec.schedule = `0 0 1 ${((past.getUTCMonth() + 6) % 12) + 1} *`;
};
/** It would have had a tick this morning. */
const editTo = (past: Date) => ({ spec: { schedule: `0 ${past.getUTCHours()} * * *` } });
/** Never done, whatever the template says. */
const LASTING = { ...never, completions: 1, parallelism: 1 };
const inNineHours = (past: Date): Date => new Date(past.getTime() + 9 * 3_600_000);
const touched = { metadata: { labels: { touched: "yes" } } };

export const UNDER_WAY: readonly Case[] = [
  {
    name: "resumed",
    change: (m) => (job(m, atOnce), (m.spec.suspend = true)),
    between: (stage) => stage.patch({ spec: { suspend: false } }),
    jobs: BOTH,
    reasons: DONE,
  },
  {
    name: "suspended-later",
    change: (m) => job(m, atOnce),
    between: async (stage) => {
      await stage.told("SawCompletedJob");
      await stage.patch({ spec: { suspend: true } });
    },
    jobs: ["first"],
    reasons: DONE,
  },
  {
    name: "edited",
    change: (m, past) => (edited(m, past), job(m, atOnce)),
    last: dayBefore,
    early: async (stage) => {
      await stage.observed();
      await stage.patch(editTo(stage.past));
      await stage.observed();
      // The native controller looks again when anything else of the object changes.
      await stage.patch(touched);
    },
    jobs: [],
    reasons: [],
    differs: { native: { jobs: ["past"], reasons: DONE } },
  },
  {
    name: "edited-catch-up",
    change: (m, past) => (edited(m, past), job(m, atOnce)),
    last: dayBefore,
    early: async (stage) => {
      await stage.patchOurs({ spec: { onScheduleChange: "CatchUp" } });
      await stage.observed();
      await stage.patch(editTo(stage.past));
      await stage.observed();
      await stage.patch(touched);
    },
    jobs: ["past"],
    reasons: DONE,
  },
  {
    // Three hours ahead in UTC, six hours ago in a zone that is nine hours ahead of it.
    name: "edited-zone",
    change: (m, past) => (daily(m, inNineHours(past)), job(m, atOnce)),
    last: (past) => dayBefore(inNineHours(past)),
    early: async (stage) => {
      await stage.observed();
      await stage.patch({ spec: { timeZone: "Etc/GMT-9" } });
      await stage.observed();
      await stage.patch(touched);
    },
    jobs: [],
    reasons: [],
    differs: { native: { jobs: ["past"], reasons: DONE } },
  },
  {
    name: "missing",
    change: (m) => job(m, never),
    between: (stage) => stage.deleteJob("first"),
    jobs: ["second"],
    reasons: ["MissingJob", "SuccessfulCreate"],
  },
  {
    name: "forbid-freed",
    change: (m) => (job(m, never), (m.spec.concurrencyPolicy = "Forbid")),
    late: async (stage) => {
      await stage.told("JobAlreadyActive");
      await stage.deleteJob("first");
    },
    jobs: ["second"],
    reasons: ["JobAlreadyActive", "MissingJob", "SuccessfulCreate"],
  },
  {
    // It excludes nothing, for the controller did not start it.
    name: "unexpected",
    change: (m) => (job(m, atOnce), (m.spec.concurrencyPolicy = "Forbid")),
    early: (stage) => stage.makeJob("by-hand", "pair", LASTING),
    jobs: ["by-hand", ...BOTH],
    reasons: ["SawCompletedJob", "SuccessfulCreate", "UnexpectedJob"],
  },
  {
    name: "unexpected-unlabelled",
    change: (m) => job(m, atOnce),
    early: (stage) => stage.makeJob("by-hand", "pair", LASTING, {}),
    jobs: ["by-hand", ...BOTH],
    reasons: DONE,
    differs: { events: /UnexpectedJob/ },
  },
  {
    name: "adopted-history",
    change: (m) => (job(m, atOnce), (m.spec.successfulJobsHistoryLimit = 2)),
    early: (stage) => stage.makeJob("by-hand", "pair", atOnce),
    jobs: BOTH,
    reasons: ["SawCompletedJob", "SuccessfulCreate", "SuccessfulDelete"],
    // Said or not said, as it was seen before or after it was done.
    perhaps: "UnexpectedJob",
    differs: { events: /UnexpectedJob/ },
  },
  {
    name: "of-others",
    change: (m) => (job(m, atOnce), (m.spec.successfulJobsHistoryLimit = 2)),
    early: async (stage) => {
      await stage.makeJob("by-other", "other", LASTING);
      await stage.makeJob("by-nobody", "none", LASTING);
    },
    jobs: BOTH,
    reasons: DONE,
  },
  {
    name: "foreign",
    change: (m) => job(m, atOnce),
    early: (stage) => stage.makeJob(stage.jobOf("first").slice("foreign-".length), "none", LASTING),
    jobs: ["second"],
    reasons: ["ForeignJob", "MissSchedule", "SawCompletedJob", "SuccessfulCreate"],
    // The native controller's pauses double with each attempt: it is about twenty seconds late for the second tick.
    differs: { late: true },
  },
  {
    name: "refused",
    change: (m) => {
      job(m, atOnce);
      m.spec.jobTemplate.metadata = { labels: REFUSE };
    },
    jobs: [],
    reasons: ["FailedCreate", "MissSchedule", "TemplateRejected"],
    differs: { events: /MissSchedule|TemplateRejected/, active: true, second: true },
  },
  {
    name: "kept",
    change: (m) => {
      job(m, never);
      m.spec.concurrencyPolicy = "Replace";
      m.spec.jobTemplate.metadata = { labels: KEEP };
    },
    jobs: ["first"],
    reasons: ["FailedDelete", "SuccessfulCreate"],
  },
  ...(["Background", "Foreground", "Orphan"] as const).map((propagation): Case => ({
    name: `deleted-${propagation.toLowerCase()}`,
    change: (m) => job(m, never),
    jobs: BOTH,
    reasons: LAUNCHED,
    end: (stage) => stage.remove(propagation),
    left: propagation === "Orphan" ? BOTH : [],
  })),
];
