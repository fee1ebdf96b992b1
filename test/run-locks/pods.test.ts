/**
 * How a run's lock follows its pods, on real ones: docs/run-locks.md has the table. In each case the run may be over only
 * after every pod of it is terminal or gone, and its lock must then be released; a witness has seen every version of both.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { until } from "../cluster/proc.ts";
import { disruptions, SPARE } from "./disruptions.ts";
import {
  openScene,
  held as heldIn,
  NAMESPACE,
  PATIENCE_MS,
  violations,
  type Scene,
} from "./scene.ts";
import type { SeenRun } from "./seen.ts";

vi.setConfig({ maxConcurrency: 16, testTimeout: 400_000, hookTimeout: 400_000 });

let scene: Scene;
beforeAll(async () => {
  scene = await openScene({ nodes: 3 });
  await scene.cluster.kubectl(["taint", "node", SPARE.node, `${SPARE.taint}=:NoSchedule`]);
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const kubectl = (...args: string[]) => scene.cluster.kubectl(["-n", NAMESPACE, ...args]);
const FOR_EVER = "trap 'exit 0' TERM; while :; do sleep 1; done";
/** Heeds no TERM: only its end or the kubelet's KILL ends it. */
const HUNG = "trap '' TERM; while :; do sleep 1; done";

const held = (run: SeenRun) => heldIn(scene, run);

describe.concurrent("the lock of a run", () => {
  it("ends with its pod", async () => {
    const run = await scene.begin("plain", { script: "sleep 15" });
    await scene.running("plain");
    await held(run);
    await scene.over("plain");
    expect(await violations(scene, "plain")).toEqual([]);
  });

  it("outlives a container that is killed and restarted", async () => {
    const script = "test -e /tmp/x/again && exit 0; touch /tmp/x/again; sleep 600";
    const run = await scene.begin("restarted", {
      script,
      pod: {
        restartPolicy: "OnFailure",
        volumes: [{ name: "x", emptyDir: {} }],
        containers: [
          {
            name: "main",
            image: "busybox:stable",
            imagePullPolicy: "Never",
            command: ["sh", "-c", script],
            volumeMounts: [{ name: "x", mountPath: "/tmp/x" }],
          },
        ],
      },
    });
    const pod = await scene.running("restarted");
    const node = scene.cluster.nodes.find(({ name }) => name === pod.object.spec.nodeName);
    const container = await until("its container", PATIENCE_MS, async () => {
      const [status] = pod.object.status?.containerStatuses ?? [];
      return status?.state?.running !== undefined && status.containerID;
    });
    await node?.killContainer(container);
    await held(run);
    await scene.over("restarted");
    expect(scene.pods("restarted")).toHaveLength(1);
    expect(pod.object.status?.containerStatuses?.[0]?.restartCount).toBe(1);
    expect(await violations(scene, "restarted")).toEqual([]);
  });

  it("outlives its Job while a container that heeds no TERM is terminating", async () => {
    const run = await scene.begin("hung", {
      script: HUNG,
      pod: { terminationGracePeriodSeconds: 15 },
    });
    await scene.running("hung");
    await kubectl("delete", "job", run.run.jobName, "--wait=false");
    await until("its pod is terminating", PATIENCE_MS, async () =>
      scene.pods("hung").some((p) => p.object.metadata.deletionTimestamp !== undefined),
    );
    await held(run);
    await scene.over("hung");
    expect(await violations(scene, "hung")).toEqual([]);
  });

  it("outlives the deletion of its Job with its pods orphaned", async () => {
    const run = await scene.begin("orphaned", { script: "sleep 25" });
    await scene.running("orphaned");
    await kubectl("delete", "job", run.run.jobName, "--cascade=orphan");
    await held(run);
    await scene.over("orphaned");
    expect(await violations(scene, "orphaned")).toEqual([]);
  });

  it("goes on when its pod is force-deleted and the Job makes another, and ends with that", async () => {
    const script = "sleep 20";
    const run = await scene.begin("forced", { script, job: { backoffLimit: 3 } });
    const first = await scene.running("forced");
    await kubectl("delete", "pod", first.object.metadata.name, "--force", "--grace-period=0");
    await until("another pod", PATIENCE_MS, async () => scene.pods("forced").length > 1);
    await held(run);
    await scene.over("forced");
    expect(await violations(scene, "forced")).toEqual([]);
  });

  it("goes on when its pod is evicted, and when the Job makes another only after it is gone", async () => {
    const run = await scene.begin("evicted", {
      // Longer than its grace period: evicted before the trap is set, the first process of a pod does not hear TERM at all.
      script:
        "trap 'sleep 3; exit 1' TERM; i=0; while test $i -lt 25; do sleep 1; i=$((i+1)); done",
      job: { backoffLimit: 3, podReplacementPolicy: "Failed" },
      pod: { terminationGracePeriodSeconds: 10 },
    });
    const pod = await scene.running("evicted");
    const { name } = pod.object.metadata;
    await scene.client.raw({
      method: "POST",
      path: `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`,
      body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } },
    });
    await until("another pod", PATIENCE_MS, async () => scene.pods("evicted").length > 1);
    await held(run);
    await scene.over("evicted");
    expect(await violations(scene, "evicted")).toEqual([]);
  });

  it("is kept while its Job is suspended without a pod, and ends when it is resumed and done", async () => {
    const run = await scene.begin("suspended", { script: FOR_EVER });
    await scene.running("suspended");
    const suspend = (value: boolean) =>
      kubectl(
        "patch",
        "job",
        run.run.jobName,
        "--type=merge",
        "-p",
        `{"spec":{"suspend":${value}}}`,
      );
    await suspend(true);
    await until("its pod is gone", PATIENCE_MS, async () =>
      scene.pods("suspended").every((p) => p.goneAt !== undefined),
    );
    await held(run);
    await suspend(false);
    await scene.running("suspended");
    await held(run);
    await kubectl("delete", "job", run.run.jobName, "--wait=false");
    await scene.over("suspended");
    expect(await violations(scene, "suspended")).toEqual([]);
  });

  it("lasts until every index is done, with those that failed", async () => {
    await scene.begin("indexed", {
      script: "sleep $((JOB_COMPLETION_INDEX * 2 + 1)); test $JOB_COMPLETION_INDEX != 1",
      job: {
        completionMode: "Indexed",
        completions: 3,
        parallelism: 2,
        backoffLimitPerIndex: 0,
        maxFailedIndexes: 3,
      },
    });
    await scene.over("indexed");
    expect(scene.pods("indexed")).toHaveLength(3);
    expect(await violations(scene, "indexed")).toEqual([]);
  });

  it("lasts until its sidecar is gone", async () => {
    await scene.begin("sidecar", {
      script: "sleep 2",
      pod: {
        terminationGracePeriodSeconds: 8,
        initContainers: [
          {
            name: "sidecar",
            image: "busybox:stable",
            imagePullPolicy: "Never",
            restartPolicy: "Always",
            command: ["sh", "-c", HUNG],
          },
        ],
      },
    });
    await scene.over("sidecar");
    expect(await violations(scene, "sidecar")).toEqual([]);
  });

  it("atMostSeconds end the run, with a reason; atLeastSeconds keep it", async () => {
    const [most] = await Promise.all([
      scene.begin("most", { script: FOR_EVER, lock: { atMostSeconds: 4 } }),
      scene.begin("least", { script: "true", lock: { atLeastSeconds: 20 } }),
    ]);
    await scene.over("most");
    const status = await until("the reason", PATIENCE_MS, async () => {
      const text = await kubectl("get", "lcj", "most", "-o", "jsonpath={.status.decisions}");
      return text.includes("AtMostExceeded") && text;
    });
    expect(status).toContain("atMostSeconds (4)");
    expect(await violations(scene, "most")).toEqual([]);
    const least = await scene.over("least");
    const { lockedAt = 0, keptUntil = 0 } = least.run;
    expect(keptUntil).toBe(lockedAt + 20_000);
    expect(Date.now()).toBeGreaterThanOrEqual(keptUntil);
    expect(await violations(scene, "least")).toEqual([]);
    expect(least.run.ended).toBe(true);
    expect(most.run.lock?.atMostSeconds).toBe(4);
  });
});

disruptions(() => scene);

describe("while a node is cut off", () => {
  it("the lock of a run there stays, though its Job is deleted, until the node confirms that its pod is gone", async () => {
    const run = await scene.begin("unreachable", { script: FOR_EVER, job: { backoffLimit: 0 } });
    const pod = await scene.running("unreachable");
    const node = scene.cluster.nodes.find(({ name }) => name === pod.object.spec.nodeName);
    await node?.cutOff();
    await until("its pod is told to go", PATIENCE_MS, async () =>
      scene.pods("unreachable").some((p) => p.object.metadata.deletionTimestamp !== undefined),
    );
    await kubectl("delete", "job", run.run.jobName, "--wait=false");
    await until("its Job is gone", PATIENCE_MS, async () =>
      (await kubectl("get", "jobs", "-o", "name")).includes(run.run.jobName) ? undefined : true,
    );
    await held(run);
    await node?.heal();
    await scene.over("unreachable");
    expect(await violations(scene, "unreachable")).toEqual([]);
  });
});
