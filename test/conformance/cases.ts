/**
 * What is put side by side. What a LockedCronJob is to do stands here in full, so that it is judged by itself too: the
 * oracle forgets a Job now and then.
 */
import type { Manifest } from "../crd/fixture.ts";

/** What is let differ: each stands in docs/cronjob-differences.md. */
export interface Difference {
  /** Events that one side gives and the other does not. */
  events?: RegExp;
  /** Which Jobs are active, by the status. */
  active?: true;
}

export interface Case {
  name: string;
  change: (m: Manifest) => void;
  /** The LockedCronJob's Jobs at the end, by their tick: the first or the second of those that are waited for. */
  jobs: readonly (1 | 2)[];
  /** Reasons of the LockedCronJob's events, in alphabetical order. */
  reasons: readonly string[];
  differs?: Difference;
}

/** Done without a pod, as soon as the Job controller sees it. */
const atOnce = { completions: 0, parallelism: 0 };
/** Never done, and without a pod. */
const never = { suspend: true };

const job = (m: Manifest, fields: object): void =>
  void Object.assign(m.spec.jobTemplate.spec, fields);

const LAUNCHED = ["SuccessfulCreate"];
const DONE = ["SawCompletedJob", "SuccessfulCreate"];
const PRUNED = ["SawCompletedJob", "SuccessfulCreate", "SuccessfulDelete"];

export const CASES: readonly Case[] = [
  { name: "allow-done", change: (m) => job(m, atOnce), jobs: [1, 2], reasons: DONE },
  { name: "allow-active", change: (m) => job(m, never), jobs: [1, 2], reasons: LAUNCHED },
  {
    name: "forbid-done",
    change: (m) => (job(m, atOnce), (m.spec.concurrencyPolicy = "Forbid")),
    jobs: [1, 2],
    reasons: DONE,
  },
  {
    name: "forbid-active",
    change: (m) => (job(m, never), (m.spec.concurrencyPolicy = "Forbid")),
    jobs: [1],
    reasons: ["JobAlreadyActive", "SuccessfulCreate"],
  },
  {
    name: "replace-done",
    change: (m) => (job(m, atOnce), (m.spec.concurrencyPolicy = "Replace")),
    jobs: [1, 2],
    reasons: DONE,
  },
  {
    name: "replace-active",
    change: (m) => (job(m, never), (m.spec.concurrencyPolicy = "Replace")),
    jobs: [2],
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
    jobs: [2],
    reasons: PRUNED,
  },
  {
    name: "fails-keep-none",
    change: (m) => (job(m, { activeDeadlineSeconds: 1 }), (m.spec.failedJobsHistoryLimit = 0)),
    jobs: [],
    reasons: PRUNED,
    differs: { events: /SawCompletedJob|MissingJob/ },
  },
  {
    name: "impossible-date",
    change: (m) => (m.spec.schedule = "0 0 31 2 *"),
    jobs: [],
    reasons: [],
    differs: { events: /^Warning InvalidSchedule/ },
  },
  {
    name: "zone",
    change: (m) => (job(m, atOnce), (m.spec.timeZone = "Asia/Kathmandu")),
    jobs: [1, 2],
    reasons: DONE,
  },
  {
    name: "deadline",
    change: (m) => (job(m, atOnce), (m.spec.startingDeadlineSeconds = 30)),
    jobs: [1, 2],
    reasons: DONE,
  },
  { name: "n".repeat(52), change: (m) => job(m, atOnce), jobs: [1, 2], reasons: DONE },
  {
    name: "metadata",
    change: (m) => {
      job(m, atOnce);
      m.metadata.labels = { of: "the-object" };
      m.spec.jobTemplate.metadata = { labels: { a: "b" }, annotations: { c: "d" } };
      m.spec.jobTemplate.spec.template.metadata = { labels: { e: "f" }, annotations: { g: "h" } };
    },
    jobs: [1, 2],
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
    jobs: [1, 2],
    reasons: DONE,
  },
];
