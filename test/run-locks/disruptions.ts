/** What the cluster itself does to pods, and what becomes of locks when every replica is away. */
import { describe, expect, it } from "vitest";
import { EventReason } from "../../src/api/reasons.ts";
import { until } from "../cluster/proc.ts";
import { held, openScene, PATIENCE_MS, violations, type Scene } from "./scene.ts";

/** A node for pods that ask for it, so that its loss is no concern of the others. */
export const SPARE = { node: "node-3", taint: "spare" };
const FOR_EVER = "trap 'exit 1' TERM; while :; do sleep 1; done";
const image = { image: "busybox:stable", imagePullPolicy: "Never" };

export function disruptions(scene: () => Scene): void {
  const kubectl = (args: string[], stdin?: string) =>
    scene().cluster.kubectl(
      ["--namespace", scene().namespace, ...args],
      stdin === undefined ? {} : { stdin },
    );
  const apply = (object: object) => kubectl(["apply", "--filename=-"], JSON.stringify(object));
  const deleteJob = (name: string) => kubectl(["delete", "job", name, "--wait=false"]);

  describe.concurrent("the lock of a run whose pod the cluster disturbs", () => {
    it("is kept while a container is killed for its memory and restarted", async () => {
      // Asks for four times its limit, and for no more should nobody enforce it.
      const script = `test -e /x/again && { ${FOR_EVER}; }; touch /x/again; mkfifo /x/pipe
        head -c 134217728 /dev/zero > /x/pipe & exec tail -n 1 /x/pipe`;
      const run = await scene().begin("hungry", {
        script,
        pod: {
          restartPolicy: "OnFailure",
          volumes: [{ name: "x", emptyDir: {} }],
          containers: [
            {
              ...image,
              name: "main",
              command: ["sh", "-c", script],
              resources: { limits: { memory: "32Mi" } },
              volumeMounts: [{ name: "x", mountPath: "/x" }],
            },
          ],
        },
      });
      const status = await until("it runs again", PATIENCE_MS, async () => {
        const [pod] = scene().pods("hungry");
        const [container] = pod?.object.status?.containerStatuses ?? [];
        return container?.restartCount === 1 && container.state?.running && container;
      });
      expect(status.lastState?.terminated?.reason).toBe("OOMKilled");
      await held(scene(), run);
      await deleteJob(run.run.jobName);
      await scene().over("hungry");
      expect(scene().pods("hungry")).toHaveLength(1);
      expect(await violations(scene(), "hungry")).toEqual([]);
    });

    it("is kept when its pod is preempted by one of higher priority, and the Job makes another", async () => {
      const cpu = await kubectl([
        "get",
        "node",
        "node-1",
        "--output=jsonpath={.status.allocatable.cpu}",
      ]);
      const millis = cpu.endsWith("m") ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000;
      // Two do not fit on a node.
      const resources = { requests: { cpu: `${Math.floor(millis * 0.6)}m` } };
      const command = ["sh", "-c", FOR_EVER];
      const containers = [{ ...image, name: "main", command, resources }];
      const run = await scene().begin("preempted", {
        script: FOR_EVER,
        job: { backoffLimit: 3 },
        pod: { containers },
      });
      const first = await scene().running("preempted");
      await apply({
        apiVersion: "scheduling.k8s.io/v1",
        kind: "PriorityClass",
        metadata: { name: "urgent" },
        value: 1_000,
      });
      const name = "preemptor";
      await apply({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name },
        spec: {
          priorityClassName: "urgent",
          nodeSelector: { "kubernetes.io/hostname": first.object.spec.nodeName },
          terminationGracePeriodSeconds: 1,
          containers,
        },
      });
      await until("it has to go", PATIENCE_MS, async () => first.goneAt !== undefined);
      expect(first.object.status?.conditions).toContainEqual(
        expect.objectContaining({ type: "DisruptionTarget", reason: "PreemptionByScheduler" }),
      );
      await scene().running("preempted");
      await held(scene(), run);
      await deleteJob(run.run.jobName);
      await scene().over("preempted");
      expect(scene().pods("preempted")).toHaveLength(2);
      expect(await violations(scene(), "preempted")).toEqual([]);
      await kubectl(["delete", "pod", name, "--wait=false"]);
    });

    it("is kept until the pods of a node that was deleted are gone", async () => {
      const run = await scene().begin("nodeless", {
        script: FOR_EVER,
        job: { backoffLimit: 0 },
        pod: {
          nodeSelector: { "kubernetes.io/hostname": SPARE.node },
          tolerations: [{ key: SPARE.taint, operator: "Exists" }],
        },
      });
      const pod = await scene().running("nodeless");
      await scene()
        .cluster.nodes.find(({ name }) => name === SPARE.node)
        ?.cutOff();
      await kubectl(["delete", "node", SPARE.node]);
      await held(scene(), run);
      await scene().over("nodeless");
      // Nobody but the collector of pods without a node could have taken it away.
      expect(pod.object.status?.conditions).toContainEqual(
        expect.objectContaining({ type: "DisruptionTarget", reason: "DeletionByPodGC" }),
      );
      expect(await violations(scene(), "nodeless")).toEqual([]);
    });
  });

  describe.concurrent("while all replicas are away", () => {
    it("a lock that runs out is taken anew, or told as lost when somebody has it; one that does not run out is renewed", async () => {
      await using away = await openScene({ within: scene(), namespace: "away" });
      const begin = (name: string, leaseSeconds: number) =>
        away.begin(name, { script: FOR_EVER, lock: { leaseSeconds } });
      const runs = await Promise.all([begin("free", 5), begin("taken", 5), begin("long", 3_600)]);
      const [free, taken, long] = runs.map(({ run }) => run);
      if (free === undefined || taken === undefined || long === undefined) throw new Error("runs");
      await Promise.all(["free", "taken", "long"].map((name) => away.running(name)));
      const value = ({ lockKey }: { lockKey: string }) => away.inRedis(lockKey);
      const everywhere = (...words: [string, ...(string | number)[]]) =>
        Promise.all(away.redis.map((server) => server.command(...words)));
      const leftMs = async () => Number((await everywhere("PTTL", long.lockKey))[0]);

      await Promise.all(away.replicas.splice(0).map((replica) => replica.kill()));
      await until("two locks have run out", PATIENCE_MS, async () => {
        const left = await Promise.all(
          [free, taken].map(({ lockKey }) => everywhere("GET", lockKey)),
        );
        return left.flat().every((held) => held === null);
      });
      await everywhere("SET", taken.lockKey, "somebody", "PX", 3_600_000);
      const before = await leftMs();
      const replica = await away.start("replica-0");
      away.replicas.push(replica);

      await until(
        "the free one is back",
        PATIENCE_MS,
        async () => (await value(free)) === free.lockValue,
      );
      await until("the long one is renewed", PATIENCE_MS, async () => (await leftMs()) > before);
      const told = await until("the event", PATIENCE_MS, async () => {
        const selector = `--field-selector=reason=${EventReason.LockLost}`;
        const path = "--output=jsonpath={.items[*].involvedObject.name}";
        const args = ["--namespace=away", "get", "events", selector, path];
        return (await scene().cluster.kubectl(args)) || undefined;
      });
      expect(told).toBe("taken");
      expect(await value(long)).toBe(long.lockValue);
      expect(await value(taken)).toBe("somebody");
      await until("the metrics", PATIENCE_MS, async () =>
        /lock_renewals_total\{outcome="regained"\} 1\n/.test(await replica.metrics()),
      );
      // Nothing has become of the pods meanwhile, and the lock comes back as soon as it is free.
      for (const { overAt } of runs) expect(overAt).toBeUndefined();
      await everywhere("DEL", taken.lockKey);
      await until(
        "it is taken anew",
        PATIENCE_MS,
        async () => (await value(taken)) === taken.lockValue,
      );

      const jobs = runs.map(({ run }) => run.jobName);
      await scene().cluster.kubectl(["--namespace=away", "delete", "job", ...jobs, "--wait=false"]);
      for (const name of ["free", "taken", "long"]) {
        await away.over(name);
        expect(away.pods(name)).toHaveLength(1);
        expect(await violations(away, name)).toEqual([]);
      }
    });
  });
}
