/** Cases that need nothing but time: ticks that come, and ticks that were missed. */
import {
  atOnce,
  BOTH,
  daily,
  DAY,
  dayBefore,
  DONE,
  EVERY_S,
  job,
  LAUNCHED,
  never,
  POLICIES,
  PRUNED,
  type Case,
} from "./case.ts";

const ON_TIME: readonly Case[] = [
  ...POLICIES.map((policy): Case => ({
    name: `${policy.toLowerCase()}-done`,
    change: (m) => (job(m, atOnce), (m.spec.concurrencyPolicy = policy)),
    jobs: BOTH,
    reasons: DONE,
  })),
  { name: "allow-active", change: (m) => job(m, never), jobs: BOTH, reasons: LAUNCHED },
  {
    name: "forbid-active",
    change: (m) => (job(m, never), (m.spec.concurrencyPolicy = "Forbid")),
    jobs: ["first"],
    reasons: ["JobAlreadyActive", "SuccessfulCreate"],
  },
  {
    name: "replace-active",
    change: (m) => (job(m, never), (m.spec.concurrencyPolicy = "Replace")),
    jobs: ["second"],
    reasons: ["SuccessfulCreate", "SuccessfulDelete"],
  },
  { name: "suspended", change: (m) => (m.spec.suspend = true), jobs: [], reasons: [] },
  {
    name: "keep-none",
    change: (m) => (job(m, atOnce), (m.spec.successfulJobsHistoryLimit = 0)),
    jobs: [],
    reasons: PRUNED,
    differs: { events: /SawCompletedJob|MissingJob/ },
  },
  {
    name: "keep-one",
    change: (m) => (job(m, atOnce), (m.spec.successfulJobsHistoryLimit = 1)),
    jobs: ["second"],
    reasons: PRUNED,
  },
  {
    name: "keep-default",
    change: (m) => {
      job(m, atOnce);
      Object.assign(m.spec, { successfulJobsHistoryLimit: null, failedJobsHistoryLimit: null });
    },
    jobs: BOTH,
    reasons: DONE,
  },
  {
    name: "fails-keep-none",
    change: (m) => (job(m, { activeDeadlineSeconds: 1 }), (m.spec.failedJobsHistoryLimit = 0)),
    jobs: [],
    reasons: PRUNED,
    differs: { events: /SawCompletedJob|MissingJob/ },
  },
  {
    name: "fails-keep-default",
    change: (m) => job(m, { activeDeadlineSeconds: 1 }),
    jobs: ["second"],
    reasons: PRUNED,
  },
  {
    name: "impossible-date",
    change: (m) => (m.spec.schedule = "0 0 31 2 *"),
    jobs: [],
    reasons: [],
    differs: { native: { jobs: [], reasons: ["InvalidSchedule"] } },
  },
  {
    name: "zone",
    // Its minutes are not those of UTC.
    change: (m) => {
      job(m, atOnce);
      Object.assign(m.spec, { schedule: "* * * * *", timeZone: "Asia/Kathmandu" });
    },
    jobs: BOTH,
    reasons: DONE,
  },
  {
    name: "deadline",
    change: (m) => (job(m, atOnce), (m.spec.startingDeadlineSeconds = 30)),
    jobs: BOTH,
    reasons: DONE,
  },
  {
    // Short, for it is waited for: the oracle may not start the first tick in time.
    name: "deadline-active",
    change: (m) => {
      job(m, never);
      Object.assign(m.spec, { concurrencyPolicy: "Forbid", startingDeadlineSeconds: 8 });
    },
    jobs: ["first"],
    reasons: ["JobAlreadyActive", "MissSchedule", "SuccessfulCreate"],
    differs: { late: true },
  },
  {
    name: "every",
    change: (m) => (job(m, atOnce), (m.spec.schedule = `@every ${EVERY_S}s`)),
    sameSecond: true,
    jobs: ["every"],
    reasons: DONE,
  },
  {
    // The native controller counts from the deadline before now, so that a tick never comes nearer.
    name: "every-deadline",
    change: (m) => {
      job(m, atOnce);
      Object.assign(m.spec, { schedule: `@every ${EVERY_S}s`, startingDeadlineSeconds: 60 });
    },
    sameSecond: true,
    jobs: ["every"],
    reasons: DONE,
    differs: { native: { jobs: [], reasons: [] } },
  },
  { name: "n".repeat(52), change: (m) => job(m, atOnce), jobs: BOTH, reasons: DONE },
  {
    name: "metadata",
    change: (m) => {
      job(m, atOnce);
      m.metadata.labels = { of: "the-object" };
      m.spec.jobTemplate.metadata = { labels: { a: "b" }, annotations: { c: "d" } };
      m.spec.jobTemplate.spec.template.metadata = { labels: { e: "f" }, annotations: { g: "h" } };
    },
    jobs: BOTH,
    reasons: DONE,
  },
  {
    name: "whole-spec",
    change: (m) => {
      job(m, {
        ...atOnce,
        ttlSecondsAfterFinished: 3_600,
        backoffLimit: 2,
        completionMode: "Indexed",
      });
      const pod = m.spec.jobTemplate.spec.template.spec;
      pod.containers[0].env = [{ name: "OWN", value: "1" }];
      pod.containers[0].resources = { requests: { cpu: "1m" } };
      pod.initContainers = [{ name: "first", image: "busybox:1.36" }];
      pod.terminationGracePeriodSeconds = 7;
    },
    jobs: BOTH,
    reasons: DONE,
  },
];

/** Ticks that nobody ran, with a past that the status tells. */
const MISSED: readonly Case[] = [
  ...POLICIES.map((policy): Case => ({
    name: `missed-${policy.toLowerCase()}`,
    change: (m, past) => (daily(m, past), job(m, atOnce), (m.spec.concurrencyPolicy = policy)),
    last: dayBefore,
    jobs: ["past"],
    reasons: DONE,
  })),
  ...POLICIES.map((policy): Case => ({
    name: `too-late-${policy.toLowerCase()}`,
    change: (m, past) => {
      daily(m, past);
      Object.assign(m.spec, { concurrencyPolicy: policy, startingDeadlineSeconds: 60 });
    },
    last: dayBefore,
    jobs: [],
    reasons: ["MissSchedule"],
    differs: { events: /MissSchedule/ },
  })),
  {
    name: "missed-in-time",
    change: (m, past) => {
      daily(m, past);
      job(m, atOnce);
      m.spec.startingDeadlineSeconds = 12 * 3_600;
    },
    last: dayBefore,
    jobs: ["past"],
    reasons: DONE,
  },
  {
    name: "restored",
    change: (m, past) => (daily(m, past), job(m, atOnce)),
    last: dayBefore,
    restored: true,
    jobs: [],
    reasons: [],
    differs: { native: { jobs: ["past"], reasons: DONE } },
  },
  {
    name: "missed-suspended",
    change: (m, past) => (daily(m, past), (m.spec.suspend = true)),
    last: dayBefore,
    jobs: [],
    reasons: [],
  },
  {
    name: "missed-many",
    change: (m, past) => (daily(m, past), job(m, atOnce)),
    last: (past) => new Date(past.getTime() - 150 * DAY),
    jobs: ["past"],
    reasons: DONE,
    differs: { events: /^Warning TooManyMissedTimes/ },
  },
  {
    name: "missed-irregular",
    change: (m, past) => (daily(m, past, "0-2"), job(m, atOnce)),
    last: (past) => new Date(dayBefore(past).getTime() + 2 * 60_000),
    jobs: ["past+2"],
    reasons: DONE,
    differs: { native: { jobs: [], reasons: [] } },
  },
];

export const BY_TIME: readonly Case[] = [...ON_TIME, ...MISSED];
