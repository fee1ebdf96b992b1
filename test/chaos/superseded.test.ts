import { expect, inject, test } from "vitest";
import { startReplica } from "../harness/replica.ts";
import { openCluster } from "../cluster/cluster.ts";
import { installCrd } from "../crd/fixture.ts";
import { startRedis } from "../redis/server.ts";
import "../cluster/vitest-setup.ts";

test("of two processes under one replica name the older ends itself, and says why", async () => {
  const cluster = await openCluster(inject("cluster").name);
  await installCrd(cluster);
  const namespace = "superseded";
  await cluster.kubectl(["create", "namespace", namespace]);
  const redis = await startRedis();
  const options = {
    name: "twin",
    namespace,
    kubeconfig: cluster.kubeconfigPath,
    redis: [redis.url],
    flags: ["--membership-lease-seconds=5", `--watch-namespaces=${namespace}`],
  };
  await using older = await startReplica(options);
  await older.ready();
  await using newer = await startReplica(options);
  const said = await older.line("superseded", (line) => line.event === "Superseded");
  expect(said.reason).toContain("runs under the same replica name twin");
  expect(await older.exited).toEqual({ code: 1, signal: null });
  await newer.ready();
  expect(newer.alive()).toBe(true);
  expect(newer.lines.some((line) => line.event === "Superseded")).toBe(false);
  await newer.stop();
  await redis.stop();
});
