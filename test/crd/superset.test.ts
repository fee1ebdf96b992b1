/** A CronJob works after changing apiVersion and kind: what the API server accepts as one, it accepts as the other. */
import { expect, test } from "vitest";
import { cronJobs, lockedCronJobs, manifest, refusalsOf, type Manifest } from "./fixture.ts";
import { containerOf, jobOf, podOf, useCrd } from "./suite.ts";

const client = useCrd();

const volume = (source: object) => (m: Manifest) => {
  podOf(m).volumes = [{ name: "v", ...source }];
};

test.each<[what: string, change: (m: Manifest) => void]>([
  ["the least", () => {}],
  ["a name of 52 characters", (m) => (m.metadata.name = "n".repeat(52))],
  ["a generated name", (m) => Object.assign(m.metadata, { name: undefined, generateName: "a-" })],
  ["a date that never comes", (m) => (m.spec.schedule = "0 0 31 2 *")],
  ["an interval", (m) => (m.spec.schedule = "@every 10s")],
  ["a zone", (m) => (m.spec.timeZone = "America/Argentina/ComodRivadavia")],
  [
    "every field of the spec",
    (m) =>
      Object.assign(m.spec, {
        timeZone: "Etc/GMT+12",
        startingDeadlineSeconds: 0,
        concurrencyPolicy: "Forbid",
        suspend: true,
        successfulJobsHistoryLimit: 0,
        failedJobsHistoryLimit: 0,
      }),
  ],
  [
    "null for what is absent",
    (m) => {
      Object.assign(m.spec, {
        timeZone: null,
        suspend: null,
        concurrencyPolicy: null,
        startingDeadlineSeconds: null,
      });
      Object.assign(podOf(m), { nodeSelector: null, volumes: null });
    },
  ],
  [
    "what older tools write",
    (m) => {
      Object.assign(m.metadata, { creationTimestamp: null });
      m.spec.jobTemplate.metadata = { creationTimestamp: null, name: "report" };
      jobOf(m).template.metadata = { creationTimestamp: null };
      containerOf(m).resources = {};
      m.status = {};
    },
  ],
  [
    "the status of a CronJob that was exported",
    (m) =>
      (m.status = {
        active: [
          {
            apiVersion: "batch/v1",
            kind: "Job",
            name: "report-29500000",
            namespace: "default",
            resourceVersion: "7",
            uid: "0b1c",
          },
        ],
        lastScheduleTime: "2026-11-30T00:00:00Z",
        lastSuccessfulTime: "2026-11-30T00:00:05Z",
      }),
  ],
  [
    "labels, annotations and finalizers of the template",
    (m) =>
      (m.spec.jobTemplate.metadata = {
        labels: { a: "b" },
        annotations: { "a.b/c": "d" },
        finalizers: ["a.b/c"],
      }),
  ],
  ["manualSelector false", (m) => (jobOf(m).manualSelector = false)],
  [
    "podFailurePolicy with restartPolicy Never",
    (m) =>
      (jobOf(m).podFailurePolicy = {
        rules: [{ action: "FailJob", onPodConditions: [{ type: "DisruptionTarget" }] }],
      }),
  ],
  ["podFailurePolicy without rules", (m) => (jobOf(m).podFailurePolicy = {})],
  [
    "an Indexed Job",
    (m) => Object.assign(jobOf(m), { completionMode: "Indexed", completions: 3, parallelism: 2 }),
  ],
  [
    "a quantity without quotes: fraction, integer, exponent",
    (m) =>
      (containerOf(m).resources = {
        requests: { cpu: 0.5, memory: 1e9 },
        limits: { cpu: 1, memory: " 2Gi " },
      }),
  ],
  [
    "an environment variable twice",
    (m) =>
      (containerOf(m).env = [
        { name: "A", value: "1" },
        { name: "A", value: "2" },
      ]),
  ],
  [
    "a port with two names",
    (m) =>
      (containerOf(m).ports = [
        { containerPort: 80, name: "a" },
        { containerPort: 80, name: "b" },
      ]),
  ],
  [
    "an address and a pull secret twice",
    (m) => {
      podOf(m).hostAliases = [
        { ip: "1.2.3.4", hostnames: ["a"] },
        { ip: "1.2.3.4", hostnames: ["b"] },
      ];
      podOf(m).imagePullSecrets = [{ name: "a" }, { name: "a" }];
    },
  ],
  [
    "a port by name, a header without value",
    (m) =>
      (containerOf(m).livenessProbe = {
        httpGet: { port: "http", httpHeaders: [{ name: "X" }] },
      }),
  ],
  [
    "a sysctl without value",
    (m) => (podOf(m).securityContext = { sysctls: [{ name: "kernel.shm_rmid_forced" }] }),
  ],
  ["a sleep without seconds", (m) => (containerOf(m).lifecycle = { preStop: { sleep: {} } })],
  [
    "a node preference without preference",
    (m) =>
      (podOf(m).affinity = {
        nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] },
      }),
  ],
  [
    "iSCSI without lun",
    volume({ iscsi: { targetPortal: "10.0.0.1", iqn: "iqn.2001-04.com.example:storage" } }),
  ],
  ["ScaleIO without secret", volume({ scaleIO: { gateway: "g", system: "s", volumeName: "v" } })],
  [
    "a trust bundle without path",
    volume({ projected: { sources: [{ clusterTrustBundle: { name: "a" } }] } }),
  ],
  ["emptyDir of a fraction", volume({ emptyDir: { sizeLimit: 0.5 } })],
  [
    "an ephemeral volume",
    volume({
      ephemeral: {
        volumeClaimTemplate: {
          metadata: { labels: { a: "b" } },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    }),
  ],
])("%s", async (_, change) => {
  // First that CronJob does: else the row says nothing.
  expect(await refusalsOf(client(), cronJobs, manifest(change))).toEqual([]);
  expect(await refusalsOf(client(), lockedCronJobs, manifest(change))).toEqual([]);
});
