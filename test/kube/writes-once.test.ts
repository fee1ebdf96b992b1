import { afterAll, beforeAll, expect, it } from "vitest";

import { isKubeError } from "../../src/kube/errors.ts";
import type { KubeClient } from "../../src/kube/verbs.ts";
import { mulberry32 } from "../builders/random.ts";
import { type ControlPlaneCluster, startCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { type CutProxy, startCutProxy } from "./cut-proxy.ts";
import { clientOf, type ConfigMap, configMaps, failureOf, newNamespace } from "./support.ts";

/**
 * The launch protocol rests on it: one call of `create` is at most one POST. Every POST here asks the server for a
 * generated name, so that a second POST of the same call would show as a second object.
 */
let cluster: ControlPlaneCluster;
let direct: KubeClient;
let namespace: string;

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane" });
  // Their watches would hold up the API server's shutdown for a minute.
  await Promise.all([cluster.controllerManager.stop(), cluster.scheduler.stop()]);
  direct = clientOf(cluster.kubeconfigPath);
  namespace = await newNamespace(direct, "once");
});

afterAll(async () => {
  await direct?.[Symbol.asyncDispose]();
  await cluster?.stop();
});

function numbered(id: string): ConfigMap {
  return { metadata: { generateName: "x-", namespace, labels: { id } } as ConfigMap["metadata"] };
}

async function countOf(id: string): Promise<number> {
  const { items } = await direct.list(configMaps, { namespace, labelSelector: `id=${id}` });
  return items.length;
}

const serverAnswers = (client: KubeClient): Promise<unknown> =>
  client.raw({ method: "GET", path: "/version" });

async function connected(): Promise<{ proxy: CutProxy; client: KubeClient } & AsyncDisposable> {
  const proxy = await startCutProxy(cluster.server);
  const client = clientOf(cluster.kubeconfigPath, { port: proxy.port });
  await serverAnswers(client);
  // The connection is free for the next call when the turn of its last answer is over.
  await new Promise((resolve) => setImmediate(resolve));
  return {
    proxy,
    client,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

it("64 calls at once take no more connections than they need", async () => {
  await using link = await connected();
  const calls = Array.from({ length: 64 }, () =>
    failureOf(link.client.get(configMaps, { namespace, name: "none" })),
  );
  const failures = await Promise.all(calls);
  expect(new Set(failures.map(({ reason }) => reason))).toEqual(new Set(["NotFound"]));
  expect(link.proxy.opened()).toBeLessThanOrEqual(32);
});

it("answer lost, connection cut: unknown, and one object", async () => {
  await using link = await connected();
  link.proxy.hold("down");
  const call = failureOf(link.client.create(configMaps, numbered("cut")));
  await until("the object", 10_000, async () => (await countOf("cut")) === 1);
  link.proxy.cut();
  link.proxy.release();
  expect(await call).toMatchObject({ status: 0, reason: "ConnectionLost", outcome: "unknown" });
  // Whatever was left in a queue would be on its way before this.
  await serverAnswers(link.client);
  expect(await countOf("cut")).toBe(1);
});

it("answer late: unknown at the deadline, and one object", async () => {
  await using link = await connected();
  link.proxy.hold("down");
  const call = link.client.create(configMaps, numbered("late"), { timeoutMs: 700 });
  expect(await failureOf(call)).toMatchObject({
    status: 0,
    reason: "DeadlineExceeded",
    outcome: "unknown",
  });
  link.proxy.release();
  await serverAnswers(link.client);
  await until("the object", 10_000, async () => (await countOf("late")) > 0);
  expect(await countOf("late")).toBe(1);
});

it("cut on the way up: unknown, and not sent again", async () => {
  await using link = await connected();
  link.proxy.hold("up");
  const call = failureOf(link.client.create(configMaps, numbered("up")));
  // The credentials are there and a connection is open, so one turn of the event loop is enough to write.
  await new Promise((resolve) => setImmediate(resolve));
  link.proxy.cut();
  link.proxy.release();
  expect(await call).toMatchObject({ status: 0, outcome: "unknown" });
  await serverAnswers(link.client);
  expect(await countOf("up")).toBe(0);
});

it("refused connection: rejected", async () => {
  await using link = await connected();
  await link.proxy.refuse();
  const error = await until("a refused connection", 10_000, async () => {
    const failure = await failureOf(link.client.create(configMaps, numbered("refused")));
    return failure.reason === "ConnectionRefused" ? failure : undefined;
  });
  expect(error.outcome).toBe("rejected");
  await link.proxy.listen();
  await serverAnswers(link.client);
  expect(await countOf("refused")).toBe(0);
});

it("no connection in time: rejected, and not sent when it comes about later", async () => {
  await using proxy = await startCutProxy(cluster.server);
  await using client = clientOf(cluster.kubeconfigPath, { port: proxy.port });
  proxy.hold("both");
  const call = client.create(configMaps, numbered("stale"), { timeoutMs: 300 });
  expect(await failureOf(call)).toMatchObject({
    reason: "DeadlineExceeded",
    outcome: "rejected",
  });
  proxy.release();
  await serverAnswers(client);
  expect(await countOf("stale")).toBe(0);
});

it("a black hole on kept connections costs the calls under way their deadline, not those that come after", async () => {
  await using link = await connected();
  await Promise.all(Array.from({ length: 16 }, () => serverAnswers(link.client)));
  link.proxy.freeze();
  const call = link.client.create(configMaps, numbered("hole"), { timeoutMs: 2500 });
  expect(await failureOf(call)).toMatchObject({ reason: "DeadlineExceeded", outcome: "unknown" });
  const before = link.proxy.opened();
  for (let i = 0; i < 20; i++) {
    await link.client.create(configMaps, numbered(`after-hole-${i}`), { timeoutMs: 10_000 });
  }
  // Two take turns: one is free for the next call only when the turn of its answer is over.
  expect(link.proxy.opened()).toBeLessThanOrEqual(before + 2);
});

it("a storm of cuts and restarts: no POST makes two objects, and what is told of it is true", async () => {
  await using link = await connected();
  const random = mulberry32(1);
  const told = new Map<string, "created" | "rejected" | "unknown">();
  let next = 0;
  const storm = new AbortController();

  async function post(): Promise<void> {
    while (!storm.signal.aborted) {
      const name = `storm-${next++}`;
      try {
        await link.client.create(configMaps, numbered(name), { timeoutMs: 2000 });
        told.set(name, "created");
      } catch (error) {
        if (!isKubeError(error)) throw error;
        told.set(name, error.outcome);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  const posters = Array.from({ length: 24 }, () => post());
  const created = (): number =>
    [...told.values()].filter((outcome) => outcome === "created").length;
  const more = async (count: number): Promise<void> => {
    const goal = created() + count;
    await until("more objects", 60_000, () => created() >= goal);
  };
  for (let round = 0; round < 15; round++) {
    await more(Math.ceil(random() * 30));
    if (random() < 0.5) link.proxy.hold(random() < 0.5 ? "down" : "up");
    await new Promise((resolve) => setTimeout(resolve, random() * 30));
    link.proxy.cut();
    link.proxy.release();
  }
  for (const how of ["SIGTERM", "SIGKILL"] as const) {
    await cluster.apiServer.restart({ how });
    await more(30);
  }
  storm.abort();
  await Promise.all(posters);

  const { items } = await direct.list(configMaps, { namespace, labelSelector: "id" });
  const objects = new Map<string, number>();
  for (const { metadata } of items) {
    const name = metadata.labels?.["id"] ?? "";
    objects.set(name, (objects.get(name) ?? 0) + 1);
  }
  const countOfCall = (name: string): number => objects.get(name) ?? 0;
  const allowed = { created: [1], rejected: [0], unknown: [0, 1] };
  const wrong = [...told].filter(
    ([name, outcome]) => !allowed[outcome].includes(countOfCall(name)),
  );
  expect(wrong).toEqual([]);
  // The storm did strike: all three happened, and answers of POSTs that went through were lost.
  expect(new Set(told.values())).toEqual(new Set(["created", "rejected", "unknown"]));
  const lost = [...told].filter(([name, said]) => said === "unknown" && countOfCall(name) === 1);
  expect(lost).not.toEqual([]);
});
