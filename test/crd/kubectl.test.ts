/** crds/ and examples/ on a cluster of their own (no operator in it), with kubectl as people use it. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { resourceType, type KubeClient, type KubeObject } from "../../src/kube/index.ts";
import type { LockedCronJobStatus } from "../../src/api/types.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import type { RunError } from "../cluster/run.ts";
import {
  clientOf,
  CRDS,
  EXAMPLES,
  installCrd,
  lockedCronJobs,
  manifest,
  refusals,
  type Manifest,
} from "./fixture.ts";

let cluster: ControlPlaneCluster;
let admin: KubeClient;
let kubectl: ControlPlaneCluster["kubectl"];

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane", log: console.error });
  admin = clientOf(cluster.adminKubeconfig);
  kubectl = cluster.kubectl;
  await installCrd(cluster);
});
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]();
  await cluster?.stop();
});

const failureOf = async (args: readonly string[], stdin?: string): Promise<string> => {
  try {
    return `no failure, but: ${await kubectl(args, stdin === undefined ? {} : { stdin })}`;
  } catch (error) {
    return (error as RunError).stderr;
  }
};

const yamlOf = (m: Manifest): string =>
  stringify({ apiVersion: lockedCronJobs.apiVersion, kind: lockedCronJobs.kind, ...m });

describe("kubectl", () => {
  test("applies the CRD again without a change, and its annotation has room to spare", async () => {
    expect(await kubectl(["apply", "--filename", CRDS])).toBe(
      "customresourcedefinition.apiextensions.k8s.io/lockedcronjobs.lockedcron.io unchanged\n",
    );
    const crd = JSON.parse(
      await kubectl(["get", "crd", "lockedcronjobs.lockedcron.io", "--output=json"]),
    ) as KubeObject;
    const applied = crd.metadata.annotations?.["kubectl.kubernetes.io/last-applied-configuration"];
    expect(applied?.length).toBeGreaterThan(100_000);
    expect(applied?.length).toBeLessThan(240_000);
  });

  test("refuses a typo deep in the pod template", async () => {
    const typo = yamlOf(
      manifest((m) => {
        const [container] = m.spec.jobTemplate.spec.template.spec.containers;
        container.securityContext = { runAsNonRot: true };
      }),
    );
    expect(await failureOf(["apply", "--filename=-"], typo)).toContain(
      'unknown field "spec.jobTemplate.spec.template.spec.containers[0].securityContext.runAsNonRot"',
    );
  });

  test("takes a stock CronJob with apiVersion and kind changed", async () => {
    const cronJob = await kubectl([
      "create",
      "cronjob",
      "stock",
      "--image=busybox:1.36",
      "--schedule=0 3 * * *",
      "--dry-run=client",
      "--output=yaml",
      "--",
      "date",
    ]);
    const changed = cronJob
      .replace("apiVersion: batch/v1", `apiVersion: ${lockedCronJobs.apiVersion}`)
      .replace("kind: CronJob", `kind: ${lockedCronJobs.kind}`);
    expect(await kubectl(["apply", "--dry-run=server", "--filename=-"], { stdin: changed })).toBe(
      "lockedcronjob.lockedcron.io/stock created (server dry run)\n",
    );
  });

  test.each([
    ["lcj", "A CronJob whose runs are locked", "spec", "status"],
    ["lcj.spec", "concurrencyPolicy\t<string>", "unlike CronJob's", "lock\t<Object>"],
    ["lcj.spec.lock", "leaseSeconds\t<integer>", "onQuorumLoss\t<string>"],
    ["lcj.status.decisions", "reason\t<string> -required-", "replica\t<string>"],
    [
      "lcj.spec.jobTemplate.spec.template.spec.containers.securityContext",
      "runAsNonRoot\t<boolean>",
      "seccompProfile\t<Object>",
    ],
  ])("explains %s", async (field, ...texts) => {
    // A line break of its own where it wraps.
    const explained = (await kubectl(["explain", field])).replace(/\n +(?=\S)/g, " ");
    for (const text of texts) expect(explained).toContain(text);
  });
});

describe("an object with a status", () => {
  /**
   * Every field that the operator's types have (but for one that only the ledger keeps so far): one that the CRD lacks
   * shows as unknown.
   */
  const status = {
    observedGeneration: 1,
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "ScheduleParsed",
        message: "",
        lastTransitionTime: "2026-11-30T00:00:00Z",
        observedGeneration: 1,
      },
    ],
    active: [
      {
        apiVersion: "batch/v1",
        kind: "Job",
        namespace: "team",
        name: "report-29500000",
        uid: "5f1c",
      },
    ],
    activeCount: 1,
    lastScheduleTime: "2026-11-30T00:00:00Z",
    lastTrigger: "t1",
    backfill: { id: "b1", cursor: "2026-01-01T12:00:00Z" },
    lastSuccessfulTime: "2026-11-29T00:00:05.123Z",
    lastFailureTime: "2026-11-28T00:00:05.123Z",
    consecutiveFailures: 2,
    nextScheduleTime: "2099-01-01T00:00:00Z",
    nextScheduleTimes: ["2099-01-01T00:00:00Z", "2099-01-02T00:00:00Z"],
    token: Number.MAX_SAFE_INTEGER,
    tzdata: "2026f",
    resolvedSchedules: [{ schedule: "7 3 * * *", timeZone: "Europe/Berlin", name: "night" }],
    lock: { key: "lockedcron:c:team/report", holder: "run-1" },
    decisions: [
      {
        time: "2026-11-30T00:00:00.012Z",
        tick: "2026-11-30T00:00:00Z",
        decision: "Launched",
        reason: "Due",
        message: "on time",
        replica: "replica-1",
      },
    ],
  } satisfies Required<LockedCronJobStatus>;

  const patchStatus = (body: object) =>
    admin.patch(
      lockedCronJobs,
      { namespace: "team", name: "report" },
      { type: "merge", body: { status: body } },
      { subresource: "status", fieldValidation: "Strict" },
    );

  beforeAll(async () => {
    await kubectl(["create", "namespace", "team"]);
    const object = manifest((m) => {
      m.metadata.namespace = "team";
      m.spec.timeZone = "Europe/Berlin";
    });
    await kubectl(["apply", "--filename=-"], { stdin: yamlOf(object) });
    await patchStatus(status);
  });

  test("keeps all of it", async () => {
    const stored = await admin.get(lockedCronJobs, { namespace: "team", name: "report" });
    expect(stored.status).toEqual(status);
  });

  test("shows CronJob's columns, and the next tick and Ready", async () => {
    const [header, row] = (await kubectl(["get", "lcj", "--namespace=team"])).trim().split("\n");
    expect(columns(header)).toEqual(
      "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST_SCHEDULE AGE NEXT READY".split(" "),
    );
    const [name, schedule, timeZone, suspend, active, last, age, ...rest] = columns(row);
    expect([name, schedule, timeZone, suspend, active]).toEqual(
      "report */5_*_*_*_* Europe/Berlin false 1".split(" "),
    );
    expect([last, age]).toEqual([
      expect.stringMatching(/^\d+[smhdy]/),
      expect.stringMatching(/^\d+s$/),
    ]);
    expect(rest).toEqual(["2099-01-01T00:00:00Z", "True"]);
  });

  test("shows the holder of the lock and the token on demand", async () => {
    const wide = await kubectl(["get", "lcj", "--namespace=team", "--output=wide"]);
    const [header, row] = wide.trim().split("\n");
    expect(columns(header).slice(-2)).toEqual(["HOLDER", "TOKEN"]);
    expect(columns(row).slice(-2)).toEqual(["run-1", String(Number.MAX_SAFE_INTEGER)]);
  });

  test("is among all, as CronJobs are", async () => {
    expect(await kubectl(["get", "all", "--namespace=team", "--output=name"])).toContain(
      "lockedcronjob.lockedcron.io/report",
    );
  });

  test.each([
    ["an unknown field", { streak: 1 }, 'unknown field "status.streak"'],
    [
      "more than ten decisions",
      { decisions: Array.from({ length: 11 }, () => status.decisions[0]) },
      "status.decisions: Too many: 11: must have at most 10 items",
    ],
    [
      "a condition that is none",
      { conditions: [{ ...status.conditions[0], status: "Maybe" }] },
      'status.conditions[0].status: Unsupported value: "Maybe"',
    ],
  ])("refuses %s", async (_, body, message) => {
    expect(await refusals(patchStatus(body))).toEqual([expect.stringContaining(message)]);
  });
});

/** Cells are two blanks or more apart; a single blank is part of one. */
function columns(line: string | undefined): string[] {
  return (line ?? "")
    .trim()
    .split(/ {2,}/)
    .map((cell) => cell.replaceAll(" ", "_"));
}

describe("the examples", () => {
  const files = readdirSync(EXAMPLES, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".yaml"),
  );

  test("are there", () => {
    expect(files.length).toBeGreaterThanOrEqual(2);
  });

  test.each(files)(
    "%s is accepted, and its pods where Pod Security is restricted",
    async (file) => {
      const filename = path.join(EXAMPLES, file);
      const applied = await kubectl(["apply", "--dry-run=server", "--filename", filename]);
      expect(applied).toMatch(
        /^(lockedcronjob\.lockedcron\.io\/\S+ created \(server dry run\)\n)+$/,
      );

      for (const document of parseAllDocuments(readFileSync(filename, "utf8"))) {
        const { spec } = document.toJS() as Manifest;
        const pod = { ...spec.jobTemplate.spec.template, apiVersion: "v1", kind: "Pod" };
        const inRestricted = async (spec: object) =>
          admin.create(
            resourceType<Manifest>("v1", "Pod", "pods"),
            { ...pod, spec, metadata: { name: "p", namespace: "restricted" } },
            { dryRun: true },
          );
        await expect(inRestricted(pod.spec)).resolves.toBeDefined();
        await expect(inRestricted({ ...pod.spec, hostNetwork: true })).rejects.toThrow(
          'violates PodSecurity "restricted',
        );
      }
    },
  );

  beforeAll(async () => {
    await kubectl(["create", "namespace", "restricted"]);
    await kubectl([
      "label",
      "namespace",
      "restricted",
      "pod-security.kubernetes.io/enforce=restricted",
    ]);
    // A pod needs its service account, which a controller makes.
    await until("the service account is there", 30_000, () =>
      kubectl(["get", "serviceaccount", "default", "--namespace=restricted"]).then(
        () => true,
        () => false,
      ),
    );
  });
});
