import { describe, expect, it } from "vitest";
import { LAUNCH_FINALIZER } from "../../src/api/names.ts";
import type { Job, PodTemplate } from "../../src/api/types.ts";
import { buildJob, occasionOf, viewOf } from "../../src/domain/job.ts";
import { aJob, aJobView, aLockedCronJob, aRun, at, NOON } from "../builders/objects.ts";

const TIMESTAMP = "2026-01-01T13:00:00+01:00";
const OURS = [
  "LOCKEDCRON_RUN_ID",
  "LOCKEDCRON_TOKEN",
  "LOCKEDCRON_SCHEDULED_TIME",
  "LOCKEDCRON_LOCK_KEY",
];

type Template = ReturnType<typeof aLockedCronJob>["spec"]["jobTemplate"];

function built(
  jobTemplate?: Template,
  names: string[] = [],
): Job & { spec: { template: PodTemplate } } {
  const owner = aLockedCronJob(jobTemplate === undefined ? {} : { jobTemplate });
  return buildJob(owner, aRun({ token: 7 }), 3, { timestamp: TIMESTAMP, names }) as never;
}

describe("the Job of an attempt", () => {
  it("can be told from any other, and says all that a lost ledger has to know", () => {
    expect(viewOf({ ...built(), metadata: { ...aJob().metadata, ...built().metadata } })).toEqual(
      aJobView({ token: 7, attempt: 3 }),
    );
  });

  it("looks as a CronJob's", () => {
    const { metadata } = built();
    expect(metadata.name).toBe(`report-${NOON / 60_000}`);
    expect(metadata.annotations?.["batch.kubernetes.io/cronjob-scheduled-timestamp"]).toBe(
      TIMESTAMP,
    );
    expect(metadata.ownerReferences).toEqual([
      {
        apiVersion: "lockedcron.io/v1alpha1",
        kind: "LockedCronJob",
        name: "report",
        uid: "owner-1",
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  it("is made with the launch finalizer on", () => {
    expect(built().metadata.finalizers).toEqual([LAUNCH_FINALIZER]);
  });

  it("has its pods' labels when the template gives it none, as the API server would have it", () => {
    const template = {
      metadata: { labels: { app: "x" } },
      spec: { containers: [{ name: "main" }], restartPolicy: "Never" },
    };
    const { name, labels } = built({ spec: { template } }).metadata;
    expect(labels).toEqual({
      app: "x",
      "job-name": name,
      "batch.kubernetes.io/job-name": name,
      "lockedcron.io/name": "report",
    });
  });

  it("keeps the user's labels and annotations, but for ours", () => {
    const template = aLockedCronJob().spec.jobTemplate;
    const { metadata } = built({
      ...template,
      metadata: {
        labels: { app: "report", "lockedcron.io/name": "forged" },
        annotations: { team: "a", "lockedcron.io/token": "999" },
      },
    });
    expect(metadata.labels).toEqual({ app: "report", "lockedcron.io/name": "report" });
    expect(metadata.annotations).toMatchObject({ team: "a", "lockedcron.io/token": "7" });
  });

  it("passes everything else of the template through untouched", () => {
    const { template } = aLockedCronJob().spec.jobTemplate.spec;
    const { spec } = built({ spec: { template, backoffLimit: 2, fieldOfTomorrow: { a: [1] } } });
    expect(spec).toMatchObject({ backoffLimit: 2, fieldOfTomorrow: { a: [1] } });
    expect(spec.template.spec.restartPolicy).toBe("Never");
  });
});

describe("its containers", () => {
  const env = (spec: PodTemplate["spec"]): string[][] =>
    [...spec.containers, ...(spec.initContainers ?? [])].map((c) =>
      (c.env ?? []).map((e) => e.name),
    );
  const withSpec = (spec: PodTemplate["spec"]): PodTemplate["spec"] =>
    built({ spec: { template: { spec } } }).spec.template.spec;

  it("get run id, token and tick, the initial ones too", () => {
    const spec = withSpec({
      containers: [{ name: "a" }, { name: "b" }],
      initContainers: [{ name: "c" }],
    });
    expect(env(spec)).toEqual([OURS, OURS, OURS]);
    expect(spec.containers[0]?.env).toEqual([
      { name: "LOCKEDCRON_RUN_ID", value: aRun().runId },
      { name: "LOCKEDCRON_TOKEN", value: "7" },
      { name: "LOCKEDCRON_SCHEDULED_TIME", value: "2026-01-01T12:00:00.000Z" },
      { name: "LOCKEDCRON_LOCK_KEY", value: aRun().lockKey },
    ]);
  });

  it("get the names of the schedules that the tick belongs to, and so do Job and pods", () => {
    const { metadata, spec } = built(undefined, ["night", "week"]);
    expect(spec.template.spec.containers[0]?.env).toContainEqual({
      name: "LOCKEDCRON_SCHEDULE_NAMES",
      value: "night,week",
    });
    for (const { annotations } of [metadata, spec.template.metadata ?? {}]) {
      expect(annotations?.["lockedcron.io/schedule-names"]).toBe("night,week");
    }
    expect(JSON.stringify(built())).not.toMatch(/schedule-names|SCHEDULE_NAMES/);
  });

  it("that were triggered bear no schedule's name, whatever tick they meet", () => {
    const schedule = { timestamp: () => TIMESTAMP, namesAt: () => ["night"] };
    const by = (kind: "trigger" | "backfill") =>
      occasionOf(aRun({ manual: { id: "1", kind } }), schedule).names;
    expect([by("trigger"), by("backfill")]).toEqual([[], ["night"]]);
    expect(occasionOf(aRun(), schedule)).toEqual({ timestamp: TIMESTAMP, names: ["night"] });
  });

  it("may use them in their own: ours come first", () => {
    const own = { name: "ARGS", value: "--run $(LOCKEDCRON_RUN_ID)" };
    expect(env(withSpec({ containers: [{ name: "a", env: [own] }] }))).toEqual([[...OURS, "ARGS"]]);
  });

  it("keep what the user has set under one of those names", () => {
    const own = { name: "LOCKEDCRON_TOKEN", value: "mine" };
    const [container] = withSpec({ containers: [{ name: "a", env: [own] }] }).containers;
    expect(container?.env?.filter((e) => e.name === own.name)).toEqual([own]);
  });

  it("are in pods that bear the same as annotations, but for those that the user has set", () => {
    const template = {
      metadata: { annotations: { team: "a", "lockedcron.io/token": "mine" } },
      spec: { containers: [{ name: "a" }] },
    };
    expect(built({ spec: { template } }).spec.template.metadata?.annotations).toEqual({
      team: "a",
      "lockedcron.io/token": "mine",
      "lockedcron.io/run-id": aRun().runId,
      "lockedcron.io/tick": "2026-01-01T12:00:00.000Z",
      "lockedcron.io/lock-key": aRun().lockKey,
    });
  });

  it("are in pods that bear our label", () => {
    const template = {
      metadata: { labels: { app: "x" } },
      spec: { containers: [{ name: "a" }] },
    };
    expect(built({ spec: { template } }).spec.template.metadata?.labels).toEqual({
      app: "x",
      "lockedcron.io/name": "report",
    });
  });
});

describe("a Job in the cache", () => {
  const condition = (type: string, status = "True") => ({
    type,
    status,
    lastTransitionTime: at(NOON + 2_000),
  });
  it.each<[situation: string, status: Job["status"], want: object]>([
    ["runs without a condition", {}, { outcome: undefined, finishedAt: undefined }],
    ["runs without a status", undefined, { outcome: undefined, finishedAt: undefined }],
    [
      "that is complete has finished when it says",
      { completionTime: at(NOON + 1_000), conditions: [condition("Complete")] },
      { outcome: "Complete", finishedAt: NOON + 1_000 },
    ],
    [
      "that failed has finished when its condition changed",
      { conditions: [condition("FailureTarget"), condition("Failed")] },
      { outcome: "Failed", finishedAt: NOON + 2_000 },
    ],
    [
      "that is about to fail still runs: its pods may live",
      { conditions: [condition("FailureTarget")] },
      { outcome: undefined },
    ],
    [
      "whose condition is not true runs",
      { conditions: [condition("Complete", "False")] },
      { outcome: undefined },
    ],
    ["that is suspended runs", { conditions: [condition("Suspended")] }, { outcome: undefined }],
    [
      "that finished at no readable time has finished all the same",
      { conditions: [{ type: "Failed", status: "True" }] },
      { outcome: "Failed", finishedAt: 0 },
    ],
  ])("%s", (_, status, want) => {
    const { status: __, ...job } = aJob();
    expect(viewOf(status === undefined ? job : { ...job, status })).toMatchObject(want);
  });

  it("is being deleted when it says so", () => {
    expect(viewOf(aJob({ deletionTimestamp: at(NOON) })).deleting).toBe(true);
  });

  it("of somebody else has no run", () => {
    const foreign = aJob({ annotations: {}, ownerReferences: [], finalizers: [] });
    expect(viewOf(foreign)).toMatchObject({
      runId: undefined,
      tick: undefined,
      attempt: undefined,
      token: undefined,
      ownerUid: undefined,
      hasLaunchFinalizer: false,
    });
  });

  it("with annotations that make no sense has none that do", () => {
    const annotations = {
      "lockedcron.io/tick": "soon",
      "lockedcron.io/token": "many",
      "lockedcron.io/attempt": "1.5",
    };
    expect(viewOf(aJob({ annotations }))).toMatchObject({
      tick: undefined,
      token: undefined,
      attempt: undefined,
    });
  });

  it("belongs to its controller, not to any owner", () => {
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "u" };
    expect(viewOf(aJob({ ownerReferences: [owner] })).ownerUid).toBeUndefined();
  });
});
