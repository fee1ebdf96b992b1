import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openCluster, startCluster } from "./cluster.ts";
import type { Cluster, SimulatedCluster } from "./cluster.ts";
import { FAIL, RUN_FOR } from "./simulation.ts";
import { useOwnRunDir } from "./testing.ts";

useOwnRunDir();

const job = (name: string, annotations: Record<string, string>): string =>
  JSON.stringify({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name },
    spec: {
      backoffLimit: 0,
      template: {
        metadata: { annotations },
        spec: { restartPolicy: "Never", containers: [{ name: "main", image: "any" }] },
      },
    },
  });

describe("a simulated cluster", () => {
  let cluster: SimulatedCluster;
  beforeAll(async () => {
    cluster = await startCluster({ mode: "simulated", nodes: 2 });
  });
  afterAll(() => cluster?.stop());

  test("plays Jobs to their end, well and badly", async () => {
    const manifest = [job("good", {}), job("bad", { [FAIL]: "true" })].join("\n");
    await cluster.kubectl(["apply", "-f", "-"], { stdin: manifest });
    await cluster.kubectl(["wait", "--for=condition=complete", "job/good", "--timeout=30s"]);
    await cluster.kubectl(["wait", "--for=condition=failed", "job/bad", "--timeout=30s"]);
    const phases = "jsonpath={range .items[*]}{.metadata.labels.job-name}={.status.phase} {end}";
    const said = await cluster.kubectl([
      "get",
      "pods",
      "-l",
      "job-name in (good, bad)",
      "-o",
      phases,
    ]);
    expect(said.trim().split(" ").toSorted()).toEqual(["bad=Failed", "good=Succeeded"]);
  });

  test("pods last as long as they are told, and go when deleted", async () => {
    await cluster.kubectl(["apply", "-f", "-"], { stdin: job("long", { [RUN_FOR]: "1h" }) });
    const pods = ["pod", "-l", "job-name=long"];
    await cluster.kubectl(["wait", "--for=create", ...pods, "--timeout=30s"]);
    await cluster.kubectl(["wait", "--for=condition=Ready", ...pods, "--timeout=30s"]);
    await cluster.kubectl(["delete", "job", "long", "--cascade=foreground", "--timeout=30s"]);
    expect(await cluster.kubectl(["get", ...pods, "-o", "name"])).toBe("");
  });

  describe("given as an existing one", () => {
    let given: Cluster;
    beforeAll(async () => {
      given = await startCluster({ mode: "existing", kubeconfig: cluster.kubeconfigPath });
    });

    test("gives users by signing requests, of which none is left", async () => {
      const bob = await given.userKubeconfig({ user: "bob", groups: ["team"] });
      const who = ["auth", "whoami", "-o", "jsonpath={.status.userInfo}"];
      const info = JSON.parse(await given.kubectl(who, { kubeconfig: bob.path })) as unknown;
      expect(info).toMatchObject({ username: "bob", groups: ["team", "system:authenticated"] });
      expect(await given.kubectl(["get", "csr", "-o", "name"])).toBe("");
    });

    test("is left as it was", async () => {
      const things = ["get", "nodes,jobs,namespaces", "-A", "-o", "name"];
      const before = await cluster.kubectl(things);
      expect(given.server).toBe(cluster.server);
      await given.stop();
      expect(await cluster.kubectl(things)).toBe(before);
      await expect(openCluster(given.name, "existing")).rejects.toThrow(/no cluster/);
    });
  });
});

describe("what a machine lacks is said in one message", () => {
  test("real pods without root", async () => {
    vi.spyOn(process, "getuid").mockReturnValue(1000);
    try {
      await expect(startCluster({ mode: "nodes" })).rejects.toThrow(
        /needs root .* or use --mode simulated/,
      );
    } finally {
      vi.restoreAllMocks();
    }
  });

  test("an existing cluster without a kubeconfig", async () => {
    vi.stubEnv("KUBECONFIG", "");
    try {
      await expect(startCluster({ mode: "existing" })).rejects.toThrow(/set KUBECONFIG/);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("an existing cluster that does not answer", async () => {
    const dir = await mkdtemp(join(tmpdir(), "lc-"));
    try {
      const kubeconfig = join(dir, "config");
      await writeFile(
        kubeconfig,
        `apiVersion: v1
kind: Config
clusters: [{ name: gone, cluster: { server: "https://127.0.0.1:1" } }]
contexts: [{ name: gone, context: { cluster: gone, user: gone } }]
users: [{ name: gone, user: { token: none } }]
current-context: gone
`,
      );
      await expect(startCluster({ mode: "existing", kubeconfig })).rejects.toThrow(
        /config: no answer from https:\/\/127\.0\.0\.1:1: .*refused/,
      );
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
