/** Native CronJob as the oracle: the same specs on the same cluster over the same two ticks. */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KubeClient } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { clientOf, installCrd, type Manifest } from "../crd/fixture.ts";
import { startReplica, type Replica } from "../harness/replica.ts";
import { startRedis, type RedisServer } from "../redis/server.ts";
import {
  createPair,
  suspendPair,
  jobsOf,
  makeNamespaces,
  outcomeOf,
  type Outcome,
} from "./pair.ts";

const MINUTE = 60_000;
/** Done without a pod, as soon as the Job controller sees it. */
const atOnce = { completions: 0, parallelism: 0 };
/** Never done, and without a pod. */
const never = { suspend: true };

/** What is let differ: each stands in docs/cronjob-differences.md. */
interface Difference {
  /** Events that one side gives and the other does not. */
  events?: RegExp;
  /** Which Jobs are active, by the status. */
  active?: true;
}
type Case = [
  name: string,
  change: (m: Manifest) => void,
  expectedJobs: number,
  differs?: Difference,
];

const job = (m: Manifest, fields: object): void =>
  void Object.assign(m.spec.jobTemplate.spec, fields);

const CASES: Case[] = [
  ["allow-done", (m) => job(m, atOnce), 2],
  ["allow-active", (m) => job(m, never), 2],
  ["forbid-done", (m) => (job(m, atOnce), (m.spec.concurrencyPolicy = "Forbid")), 2],
  ["forbid-active", (m) => (job(m, never), (m.spec.concurrencyPolicy = "Forbid")), 1],
  ["replace-done", (m) => (job(m, atOnce), (m.spec.concurrencyPolicy = "Replace")), 2],
  [
    "replace-active",
    (m) => (job(m, never), (m.spec.concurrencyPolicy = "Replace")),
    1,
    { events: /MissingJob|UnexpectedJob/, active: true },
  ],
  ["suspended", (m) => (m.spec.suspend = true), 0],
  [
    "keep-none",
    (m) => (job(m, atOnce), (m.spec.successfulJobsHistoryLimit = 0)),
    0,
    { events: /SawCompletedJob|MissingJob/ },
  ],
  ["keep-one", (m) => (job(m, atOnce), (m.spec.successfulJobsHistoryLimit = 1)), 1],
  [
    "fails-keep-none",
    (m) => (job(m, { activeDeadlineSeconds: 1 }), (m.spec.failedJobsHistoryLimit = 0)),
    0,
    { events: /SawCompletedJob|MissingJob/ },
  ],
  [
    "impossible-date",
    (m) => (m.spec.schedule = "0 0 31 2 *"),
    0,
    { events: /^Warning InvalidSchedule/ },
  ],
  ["zone", (m) => (job(m, atOnce), (m.spec.timeZone = "Asia/Kathmandu")), 2],
  ["deadline", (m) => (job(m, atOnce), (m.spec.startingDeadlineSeconds = 30)), 2],
  ["n".repeat(52), (m) => job(m, atOnce), 2],
  [
    "metadata",
    (m) => {
      job(m, atOnce);
      m.metadata.labels = { of: "the-object" };
      m.spec.jobTemplate.metadata = { labels: { a: "b" }, annotations: { c: "d" } };
      m.spec.jobTemplate.spec.template.metadata = { labels: { e: "f" }, annotations: { g: "h" } };
    },
    2,
  ],
  [
    "whole-spec",
    (m) => {
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
    2,
  ],
];

let cluster: ControlPlaneCluster;
let client: KubeClient;
let redis: RedisServer;
let replica: Replica;
/** The two ticks that are compared, minutes since the epoch. */
let ticks: number[];

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane", log: console.error });
  client = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
  await cluster.kubectl(["create", "namespace", "lockedcron-system"]);
  await makeNamespaces(client);
  redis = await startRedis();
  replica = await startReplica({
    name: "replica-a",
    kubeconfig: cluster.kubeconfigPath,
    redis: [redis.url],
  });
  await replica.ready();
  // All are there some time before the first tick, or one side might see it and the other not.
  const left = MINUTE - (Date.now() % MINUTE);
  if (left < 20_000) await new Promise((resolve) => setTimeout(resolve, left + 1_000));
  for (const [name, change] of CASES) await createPair(client, name, change);
  const first = Math.floor(Date.now() / MINUTE) + 1;
  ticks = [first, first + 1];
  const second = "allow-done";
  await until("both sides have launched the second tick", 4 * MINUTE, async () => {
    const of = async (side: "native" | "ours") =>
      (await jobsOf(client, side, second)).some((j) => j.metadata.name === `${second}-${ticks[1]}`);
    return (await of("native")) && (await of("ours"));
  });
  // A third tick would only blur what became of the two.
  for (const [name] of CASES) await suspendPair(client, name);
}, 6 * MINUTE);

afterAll(async () => {
  await replica?.stop();
  await client?.[Symbol.asyncDispose]();
  await redis?.stop();
  await cluster?.stop();
});

describe.concurrent("a LockedCronJob does what a CronJob does", () => {
  test.each(CASES)("%s", async (name, _, expectedJobs, differs = {}) => {
    let native: Outcome | undefined;
    let ours: Outcome | undefined;
    // Each side is given the time that it needs to come to its end. What the two say is compared once more then, to be shown.
    await until(`both sides of ${name} have come to the same end`, 40_000, async () => {
      native = without(await outcomeOf(client, "native", name, ticks), differs);
      ours = without(await outcomeOf(client, "ours", name, ticks), differs);
      return native.jobs.length === expectedJobs && isDeepStrictEqual(native, ours);
    }).catch(() => undefined);
    expect(native?.jobs).toHaveLength(expectedJobs);
    expect(ours).toEqual(native);
  });
});

function without(outcome: Outcome, { events, active }: Difference): Outcome {
  const kept = outcome.events.filter((event) => events?.test(event) !== true);
  const { active: said, ...rest } = outcome.status;
  return { ...outcome, events: kept, status: active === true ? rest : { ...rest, active: said } };
}
