import { stringify } from "yaml";

/** Pod annotation: how long a simulated pod of a Job runs, as a Go duration (`5s`). Default: half a second. */
export const RUN_FOR = "simulated.lockedcron.io/run-for";
/** Pod annotation: `"true"` lets a simulated pod of a Job fail with exit code 1 when its time is over. */
export const FAIL = "simulated.lockedcron.io/fail";

const stage = (name: string, spec: object) => ({
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name },
  spec: { resourceRef: { apiGroup: "v1", kind: "Pod" }, ...spec },
});

const is = (key: string, operator: string, values?: readonly string[]) => ({
  key,
  operator,
  ...(values && { values }),
});

const isBeingDeleted = is(".metadata.deletionTimestamp", "Exists");
const isKept = is(".metadata.deletionTimestamp", "DoesNotExist");
const isRunning = is(".status.phase", "In", ["Running"]);
const isOfJob = is(".metadata.ownerReferences.[].kind", "In", ["Job"]);
const fails = `.metadata.annotations["${FAIL}"]`;

/** Status of all containers in one state, as a template that kwok fills. */
const containers = (ready: boolean, state: string): string => `
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: ${ready}
  restartCount: 0
  state: ${state}
{{ end }}`;

const condition = (type: string): string =>
  `- { type: ${type}, status: "True", lastTransitionTime: {{ Now | Quote }} }`;

const RUNNING = `
phase: Running
startTime: {{ Now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName false ( or .metadata.uid "" ) .metadata.name .metadata.namespace | Quote }}
conditions:
${["Initialized", "ContainersReady", "Ready"].map(condition).join("\n")}
${containers(true, "{ running: { startedAt: {{ Now | Quote }} } }")}`;

const ended = (phase: string, reason: string, exitCode: number): string => `
phase: ${phase}
${containers(
  false,
  `{ terminated: { exitCode: ${exitCode}, reason: ${reason}, startedAt: {{ $.status.startTime | Quote }}, finishedAt: {{ Now | Quote }} } }`,
)}`;

const end = (name: string, failing: object, status: string) =>
  stage(name, {
    selector: { matchExpressions: [isKept, isRunning, isOfJob, failing] },
    delay: {
      durationMilliseconds: 500,
      durationFrom: { expressionFrom: `.metadata.annotations["${RUN_FOR}"]` },
    },
    next: { statusTemplate: status },
  });

/**
 * How simulated pods live, for kwok (https://kwok.sigs.k8s.io/docs/user/stages-configuration/): run at once, end by themselves
 * when a Job owns them, go when deleted. Unlike kwok's defaults they last a while, and deletion leaves the Job controller's
 * finalizer alone. The nodes are kwok's defaults.
 */
export function simulationConfig(): string {
  const documents = [
    {
      apiVersion: "config.kwok.x-k8s.io/v1alpha1",
      kind: "KwokConfiguration",
      options: { podPlayStageParallelism: 16, nodeLeaseDurationSeconds: 40 },
    },
    stage("pod-run", {
      selector: { matchExpressions: [isKept, is(".status.podIP", "DoesNotExist")] },
      next: { statusTemplate: RUNNING },
    }),
    end("pod-succeed", is(fails, "NotIn", ["true"]), ended("Succeeded", "Completed", 0)),
    end("pod-fail", is(fails, "In", ["true"]), ended("Failed", "Error", 1)),
    stage("pod-delete", {
      selector: { matchExpressions: [isBeingDeleted] },
      next: { delete: true },
    }),
  ];
  return documents.map((document) => stringify(document)).join("---\n");
}

/** `count` nodes for kwok to play, as a manifest for `kubectl apply`. */
export function simulatedNodes(count: number): string {
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: `simulated-${index + 1}`,
      annotations: { "node.alpha.kubernetes.io/ttl": "0" },
      labels: {
        "kubernetes.io/hostname": `simulated-${index + 1}`,
        "kubernetes.io/os": "linux",
        type: "kwok",
      },
    },
  }));
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
