import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCluster, startCluster } from "./cluster.ts";
import type { ControlPlaneCluster } from "./cluster.ts";
import { clusterDir } from "./paths.ts";
import { isAlive, processesOf, signal, until } from "./proc.ts";
import { RunError } from "./run.ts";
import { listRecords } from "./state.ts";
import { mustIdentify, startElsewhere, useOwnRunDir } from "./testing.ts";

useOwnRunDir();

const pidsOf = ({ etcd, apiServer, controllerManager, scheduler }: ControlPlaneCluster) =>
  [etcd, apiServer, controllerManager, scheduler].map(({ pid }) => mustIdentify(pid));

describe("a control plane", () => {
  let cluster: ControlPlaneCluster;
  beforeAll(async () => {
    cluster = await startCluster({
      mode: "control-plane",
      flags: { apiServer: { "max-requests-inflight": 321 } },
    });
  });
  afterAll(() => cluster?.stop());

  test("reports the real version and takes the caller's flags", async () => {
    expect(JSON.parse(await cluster.kubectl(["version", "-o", "json"]))).toMatchObject({
      serverVersion: { gitVersion: "v1.36.3", major: "1", minor: "36" },
    });
    expect(cluster.apiServer.flags).toMatchObject({ "max-requests-inflight": 321 });
  });

  test("runs the Job controller: a Job gets its Pod", async () => {
    await cluster.kubectl(["create", "job", "one", "--image=busybox:test"]);
    const pods = () =>
      cluster.kubectl([
        "get",
        "pods",
        "-l",
        "job-name=one",
        "-o",
        "jsonpath={.items[*].status.phase}",
      ]);
    expect(await until("pod of the Job", 20_000, pods)).toBe("Pending");
  });

  test("gives users what RBAC gives them and no more", async () => {
    const ann = await cluster.userKubeconfig({ user: "ann/1", groups: ["team+a"] });
    const asAnn = { kubeconfig: ann.path };
    await expect(cluster.kubectl(["get", "pods"], asAnn)).rejects.toThrow(
      /User "ann\/1" cannot list resource "pods"/,
    );
    const binding = ["rolebinding", "team", "--clusterrole=view", "--group=team+a"];
    await cluster.kubectl(["create", ...binding]);
    // The authorizer sees the binding through a watch.
    const listed = () =>
      cluster.kubectl(["get", "pods", "-o", "name"], asAnn).catch((error: unknown) => {
        if (error instanceof RunError) return undefined;
        throw error;
      });
    expect(await until("binding in force", 10_000, listed)).toContain("pod/");
    await expect(cluster.kubectl(["get", "secrets"], asAnn)).rejects.toThrow(/cannot list/);
  });

  test("a restarted API server keeps its address, its data and its new flags", async () => {
    const pid = cluster.apiServer.pid;
    await cluster.kubectl(["create", "namespace", "kept"]);
    await cluster.apiServer.restart({ flags: { "max-requests-inflight": 300 }, how: "SIGKILL" });
    expect(cluster.apiServer.pid).not.toBe(pid);
    expect(await cluster.kubectl(["get", "namespace", "kept", "-o", "name"])).toBe(
      "namespace/kept\n",
    );
    expect(cluster.apiServer.flags).toMatchObject({ "max-requests-inflight": 300 });
  });

  test("a paused etcd stops writes until it is resumed", async () => {
    cluster.etcd.pause();
    await expect(
      cluster.kubectl(["create", "namespace", "late", "--request-timeout=1s"]),
    ).rejects.toThrow(RunError);
    cluster.etcd.resume();
    await cluster.apiServer.ready();
    await cluster.kubectl(["create", "namespace", "later"]);
  });

  test("another process can take it up, change its servers and leave it running", async () => {
    const other = await openCluster(cluster.name);
    await other.controllerManager.restart({ flags: { "kube-api-qps": 500 } });
    await other.stop();
    expect(cluster.controllerManager.flags).toMatchObject({ "kube-api-qps": 500 });
    expect(cluster.controllerManager.pid).toBe(other.controllerManager.pid);
  });

  test("refuses the name of one that exists", async () => {
    await expect(startCluster({ mode: "control-plane", name: cluster.name })).rejects.toThrow(
      `cluster ${cluster.name} exists already`,
    );
  });
});

test("two side by side, and stop leaves nothing of either", async () => {
  const [one, two] = await Promise.all([
    startCluster({ mode: "control-plane" }),
    startCluster({ mode: "control-plane" }),
  ]);
  await one.kubectl(["create", "namespace", "only-in-one"]);
  await expect(two.kubectl(["get", "namespace", "only-in-one"])).rejects.toThrow(/not found/);
  const processes = [...pidsOf(one), ...pidsOf(two)];
  await Promise.all([one.stop(), two.stop()]);
  expect(processes.filter(isAlive)).toEqual([]);
  expect(processesOf(one.dir)).toEqual([]);
  expect(existsSync(one.dir) || existsSync(two.dir)).toBe(false);
});

test("the guardian removes a cluster whose owner is killed", async () => {
  const { owner, name } = await startElsewhere({ mode: "control-plane" });
  const cluster = await openCluster(name);
  const processes = pidsOf(cluster);
  signal(owner, "SIGKILL");
  await until("removal", 30_000, () => !existsSync(cluster.dir));
  expect(processes.filter(isAlive)).toEqual([]);
});

test("the next start removes what a crash left when the guardian died as well", async () => {
  const { owner, name } = await startElsewhere({ mode: "control-plane" });
  const processes = pidsOf(await openCluster(name));
  const record = (await listRecords()).find((entry) => entry.name === name);
  if (!record?.guardian) throw new Error("the record names no guardian");
  signal(record.guardian, "SIGKILL");
  await until("end of the guardian", 5_000, () => !isAlive(record.guardian ?? owner));
  signal(owner, "SIGKILL");
  await until("end of the owner", 5_000, () => !isAlive(owner));
  expect(processes.every(isAlive)).toBe(true);

  await using next = await startCluster({ mode: "control-plane" });
  expect(processes.filter(isAlive)).toEqual([]);
  expect(existsSync(clusterDir(name))).toBe(false);
  expect(next.apiServer.pid).toBeDefined();
});

test("a server that cannot start is named, with the end of its log, and nothing is left", async () => {
  const wrong = { apiServer: { "no-such-flag": 1 } };
  await expect(startCluster({ mode: "control-plane", flags: wrong })).rejects.toThrow(
    /^kube-apiserver ended while starting; the end of its log:[^]*unknown flag: --no-such-flag/,
  );
  expect(await listRecords()).toEqual([]);
});
