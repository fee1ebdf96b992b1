import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCluster, startCluster } from "./cluster.ts";
import type { NodesCluster } from "./cluster.ts";
import { isAlive, processesOf, signal, until } from "./proc.ts";
import { loadRecord } from "./state.ts";
import { mustIdentify, startElsewhere, useOwnRunDir } from "./testing.ts";

useOwnRunDir();

const mountsOf = (dir: string): string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(`${dir}/`));

/** What a cluster holds of the host. */
async function holdings(cluster: { name: string; dir: string }) {
  const record = await loadRecord(cluster.name);
  const { subnet, host } = record ?? {};
  const look = () => ({
    namespaces: (host?.netns ?? []).filter((name) => existsSync(`/run/netns/${name}`)),
    link: existsSync(`/sys/class/net/lc${subnet}`),
    mounts: mountsOf(cluster.dir),
    processes: processesOf(cluster.dir),
    folder: existsSync(cluster.dir),
    logLinks: readdirSync("/var/log/containers")
      .map((name) => targetOf(`/var/log/containers/${name}`))
      .filter((target) => target.startsWith(`${cluster.dir}/`)),
  });
  return { before: look(), after: look };
}

/** Another cluster may take its own away between the look at the folder and the look at the link. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

/** The kernel takes links apart some time after their namespace was deleted. */
async function nothingLeft(held: Awaited<ReturnType<typeof holdings>>): Promise<void> {
  await until("its link is gone", 60_000, () => !held.after().link);
  expect(held.after()).toEqual(NOTHING);
}

const NOTHING = {
  namespaces: [],
  link: false,
  mounts: [],
  processes: [],
  folder: false,
  logLinks: [],
};

/** A pod under the restricted Pod Security Standard that serves its own name. */
const webPod = (name: string, node: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: "web" } },
    spec: {
      nodeName: node,
      hostname: name,
      subdomain: "web",
      terminationGracePeriodSeconds: 0,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "web",
          image: "busybox:stable",
          imagePullPolicy: "Never",
          command: ["sh", "-c", "hostname > /tmp/index.html && exec httpd -f -p 8080 -h /tmp"],
          readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
          resources: { limits: { cpu: "100m", memory: "32Mi" } },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
        },
      ],
    },
  });

const webService = JSON.stringify({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web" },
  spec: { clusterIP: "None", selector: { app: "web" }, ports: [{ port: 8080 }] },
});

const fetchText = async (url: string): Promise<string> =>
  (await fetch(url, { signal: AbortSignal.timeout(1_000) })).text();

describe("two nodes", () => {
  let cluster: NodesCluster;
  beforeAll(async () => {
    // Losing a node is noticed within seconds instead of a minute.
    cluster = await startCluster({
      mode: "nodes",
      nodes: 2,
      kubelet: { nodeLeaseDurationSeconds: 4, nodeStatusUpdateFrequency: "1s" },
      flags: {
        controllerManager: { "node-monitor-grace-period": "4s", "node-monitor-period": "1s" },
      },
    });
  });
  afterAll(() => cluster?.stop());

  test("a Job runs in a real pod to completion, and kubectl logs shows what it said", async () => {
    const command = ["sh", "-c", "echo ran as $(id -u) on $(hostname)"];
    await cluster.kubectl(["create", "job", "hello", "--image=busybox:stable", "--", ...command]);
    await cluster.kubectl(["wait", "--for=condition=complete", "job/hello", "--timeout=60s"]);
    const pod = await cluster.kubectl(["get", "pods", "-l", "job-name=hello", "-o", "name"]);
    const said = await cluster.kubectl(["logs", "job/hello"]);
    expect(`pod/${said.trim().replace("ran as 0 on ", "")}`).toBe(pod.trim());
  });

  test("pods reach each other by name across nodes, and people run commands in them", async () => {
    const pods = [webPod("one", "node-1"), webPod("two", "node-2")].join("\n");
    await cluster.kubectl([
      "label",
      "ns",
      "default",
      "pod-security.kubernetes.io/enforce=restricted",
    ]);
    await cluster.kubectl(["apply", "-f", "-"], { stdin: `${webService}\n${pods}` });
    await cluster.kubectl([
      "wait",
      "--for=condition=Ready",
      "pod",
      "-l",
      "app=web",
      "--timeout=60s",
    ]);
    const ask =
      "wget -q -O - http://$(nslookup two.web.default.svc.cluster.local | awk '/^Address: /{print $2}'):8080";
    // The name appears when CoreDNS has seen the endpoint through its watch.
    const answer = () =>
      cluster.kubectl(["exec", "one", "--", "sh", "-c", ask]).catch(() => undefined);
    expect(await until("answer of pod two", 20_000, answer)).toBe("two\n");
  });

  test("a node that is cut off becomes NotReady while its pod goes on, and is Ready again when healed", async () => {
    const [, node] = cluster.nodes;
    if (!node) throw new Error("no second node");
    const address = await cluster.kubectl(["get", "pod", "two", "-o", "jsonpath={.status.podIP}"]);
    const url = `http://${address}:8080/`;
    const answer = () => fetchText(url).catch(() => undefined);
    expect(await until("answer of pod two", 60_000, answer)).toBe("two\n");
    await node.cutOff();
    const unknown = ["wait", "--for=condition=Ready=Unknown", `node/${node.name}`, "--timeout=60s"];
    await cluster.kubectl(unknown);
    await expect(fetchText(url)).rejects.toThrow(/timeout|fetch failed/);
    expect(await node.run("busybox", ["wget", "-q", "-O", "-", url])).toBe("two\n");
    await node.heal();
    await cluster.kubectl(["wait", "--for=condition=Ready", `node/${node.name}`, "--timeout=60s"]);
    expect(await until("answer of pod two again", 60_000, answer)).toBe("two\n");
  });

  test("a second cluster lives beside it; killing its owner gives back all that it held", async () => {
    const { owner, name } = await startElsewhere({ mode: "nodes", nodes: 1 });
    const other = await openCluster(name, "nodes");
    await other.kubectl(["apply", "-f", "-"], { stdin: webPod("alone", "node-1") });
    await other.kubectl(["wait", "--for=condition=Ready", "pod/alone", "--timeout=60s"]);
    expect(other.nodes[0]?.address).not.toBe(cluster.nodes[0]?.address);
    const held = await holdings(other);
    expect(held.before.namespaces).toHaveLength(2);
    expect(held.before.mounts.length).toBeGreaterThan(3);
    signal(owner, "SIGKILL");
    await until("removal of the cluster", 120_000, () => !existsSync(other.dir));
    await nothingLeft(held);
    await cluster.kubectl(["get", "nodes"]);
  });

  test("stop leaves nothing of it on the host", async () => {
    const held = await holdings(cluster);
    const kubelets = cluster.nodes.map((node) => mustIdentify(node.kubelet.pid));
    await cluster.stop();
    await nothingLeft(held);
    expect(kubelets.filter(isAlive)).toEqual([]);
  });
});
