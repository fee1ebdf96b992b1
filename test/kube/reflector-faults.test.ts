import type { ClientRequest } from "node:http";
import { request, type RequestOptions } from "node:https";

import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import type { KubeError } from "../../src/kube/errors.ts";
import { type KubeObject, resourceType } from "../../src/kube/resources.ts";
import type { KubeClient } from "../../src/kube/verbs.ts";
import { type ControlPlaneCluster, startCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { startCutProxy } from "./cut-proxy.ts";
import { type Reflecting, reflect } from "./reflecting.ts";
import {
  clientOf,
  type ConfigMap,
  configMaps,
  failureOf,
  kubeConfigOf,
  newNamespace,
} from "./support.ts";

/** A control plane of its own: its API server is stopped, killed and hung. */
let cluster: ControlPlaneCluster;
let client: KubeClient;
let namespace: string;

beforeAll(async () => {
  cluster = await startCluster({ mode: "control-plane" });
  // Their watches would hold up the API server's shutdown for a minute, and nothing here needs them.
  await Promise.all([cluster.controllerManager.stop(), cluster.scheduler.stop()]);
  client = clientOf(cluster.kubeconfigPath);
});
afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await cluster?.stop();
});
beforeEach(async () => {
  namespace = await newNamespace(client, "faults");
});

const put = (name: string): Promise<ConfigMap> =>
  until(`create ${name}`, 60_000, () =>
    client.create(configMaps, { metadata: { name, namespace } }).catch(() => undefined),
  );

/** In step with the server, and watching. */
async function inStep(through = client): Promise<Reflecting<ConfigMap>> {
  const it = reflect({ client: through, type: configMaps, namespace });
  await it.inStep();
  return it;
}

it.each(["SIGTERM", "SIGKILL"] as const)(
  "API server restarted by %s: named, and in step again by itself",
  async (how) => {
    await put("before");
    await using proxy = await startCutProxy(cluster.server);
    await using through = clientOf(cluster.kubeconfigPath, { port: proxy.port });
    await using it = await inStep(through);
    // A watch that stays open would hold a shutdown up for a minute.
    if (how === "SIGTERM") await proxy.refuse();
    await cluster.apiServer.restart({ how });
    await proxy.listen();
    await put("after");
    await it.told("+after");
    expect(it.changes).toEqual(["+before", "+after"]);
    expect(it.troubles.length).toBeGreaterThan(0);
    expect(it.reflector.health().lastError).toBeUndefined();
  },
);

it("API server hangs: the silence is noticed, and the watch goes on when it answers again", async () => {
  await using it = await inStep();
  const { store } = it.reflector;
  const freshAsOf = store.freshAsOf();
  cluster.apiServer.pause();
  try {
    await it.trouble("ConnectionLost");
    const call = client.create(
      configMaps,
      { metadata: { name: "hung", namespace } },
      { timeoutMs: 500 },
    );
    expect(await failureOf(call)).toMatchObject({ reason: "DeadlineExceeded", status: 0 });
    expect(store.freshAsOf()).toBe(freshAsOf);
  } finally {
    cluster.apiServer.resume();
  }
  await cluster.apiServer.ready();
  await put("after");
  await it.told("+after");
  expect(it.reflector.health()).toMatchObject({ watching: true });
});

it("the place of the watch has expired (410): lists again and tells what the gap hid, deletions too", async () => {
  await Promise.all([put("stays"), put("goes")]);
  await using proxy = await startCutProxy(cluster.server);
  await using through = clientOf(cluster.kubeconfigPath, { port: proxy.port });
  await using it = await inStep(through);
  await proxy.refuse();
  await it.trouble("ConnectionRefused");
  await client.delete(configMaps, { namespace, name: "goes" });
  await put("comes");
  // A new API server knows nothing of what was before its start.
  await cluster.apiServer.restart({ how: "SIGKILL" });
  await client.raw({ method: "GET", path: "/version" });
  it.changes.length = 0;
  await proxy.listen();
  await Promise.all([it.told("+comes"), it.told("-goes")]);
  expect([...it.changes].sort()).toEqual(["+comes", "-goes"]);
  expect(it.troubles).toContain("Expired");
  expect(it.reflector.health().lastError).toBeUndefined();
});

it("a list that is compacted away between two pages says Expired, which begins it again", async () => {
  await Promise.all(["a", "b", "c"].map((name) => put(name)));
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  interface Page {
    metadata: { continue: string; resourceVersion: string };
  }
  const first = (await client.raw({ method: "GET", path, query: { limit: "1" } })) as Page;
  await put("d");
  await compact(Number((await put("e")).metadata.resourceVersion));
  // It may still have that state in its own cache.
  await cluster.apiServer.restart({ how: "SIGKILL" });
  const query = { limit: "1", continue: first.metadata.continue };
  expect(await failureOf(client.raw({ method: "GET", path, query }))).toMatchObject({
    status: 410,
    reason: "Expired",
  });
});

/** Makes etcd forget everything before a revision, as the API server lets it do every five minutes. */
async function compact(revision: number): Promise<void> {
  const endpoint = String(cluster.etcd.flags["listen-client-urls"]);
  const answer = await fetch(`${endpoint}/v3/kv/compaction`, {
    method: "POST",
    body: JSON.stringify({ revision: String(revision), physical: true }),
  });
  if (!answer.ok) throw new Error(`compaction: ${answer.status} ${await answer.text()}`);
}

it("a server that speaks no HTTP/2: every watch gets a connection of its own", async () => {
  await cluster.apiServer.restart({ how: "SIGKILL", flags: { "disable-http2-serving": true } });
  await using plain = clientOf(cluster.kubeconfigPath);
  const reflecting = Array.from({ length: 6 }, () =>
    reflect({ client: plain, type: configMaps, namespace }),
  );
  await Promise.all(reflecting.map((it) => it.inStep()));
  await put("everywhere");
  await Promise.all(reflecting.map((it) => it.told("+everywhere")));
  expect(reflecting.flatMap(({ troubles }) => troubles)).toEqual([]);
  await Promise.all(reflecting.map((it) => it[Symbol.asyncDispose]()));
  await cluster.apiServer.restart({ how: "SIGKILL", flags: { "disable-http2-serving": null } });
});

const flowcontrol = "flowcontrol.apiserver.k8s.io/v1";
const levels = resourceType(
  flowcontrol,
  "PriorityLevelConfiguration",
  "prioritylevelconfigurations",
  false,
);
const schemas = resourceType(flowcontrol, "FlowSchema", "flowschemas", false);

it("429 by priority and fairness: named, a write rejected for sure, and in step when it ends", async () => {
  const { path } = await cluster.userKubeconfig({ user: "throttled" });
  const binding = ["create", "clusterrolebinding", "throttled", "--clusterrole=cluster-admin"];
  await cluster.kubectl([...binding, "--user=throttled"]);
  await client.create(levels, {
    metadata: { name: "one-at-a-time" },
    spec: {
      type: "Limited",
      limited: {
        nominalConcurrencyShares: 0,
        lendablePercent: 0,
        borrowingLimitPercent: 0,
        limitResponse: { type: "Reject" },
      },
    },
  } as KubeObject);
  const everything = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] };
  await client.create(schemas, {
    metadata: { name: "throttled" },
    spec: {
      matchingPrecedence: 2,
      priorityLevelConfiguration: { name: "one-at-a-time" },
      rules: [
        {
          subjects: [{ kind: "User", user: { name: "throttled" } }],
          resourceRules: [{ ...everything, clusterScope: true }],
        },
      ],
    },
  } as KubeObject);
  await using throttled = clientOf(path);
  const create = (name: string): Promise<ConfigMap> =>
    throttled.create(configMaps, { metadata: { name, namespace } });
  // The one place is taken by a request whose body never comes.
  const holder = await until("throttling", 60_000, async () => {
    const request = await unfinishedRequest(path);
    const attempts = [`t-${Math.random()}`, `t-${Math.random()}`].map((name) =>
      create(name).then(
        () => 201,
        (error: unknown) => (error as KubeError).status,
      ),
    );
    if ((await Promise.all(attempts)).every((status) => status === 429)) return request;
    request.destroy();
    return undefined;
  });
  expect(await failureOf(create("refused"))).toMatchObject({
    status: 429,
    reason: "TooManyRequests",
    outcome: "rejected",
    retryAfterMs: expect.any(Number) as number,
  });
  expect((await failureOf(client.get(configMaps, { namespace, name: "refused" }))).status).toBe(
    404,
  );
  await using it = reflect({ client: throttled, type: configMaps, namespace });
  await it.trouble("TooManyRequests");
  holder.destroy();
  await put("after");
  await it.told("+after");
  expect(it.reflector.health().lastError).toBeUndefined();
});

/** A POST of that user of which the server has the head and waits for the rest. */
async function unfinishedRequest(kubeconfigPath: string): Promise<ClientRequest> {
  const options: RequestOptions = {};
  await kubeConfigOf(kubeconfigPath).applyToHTTPSOptions(options);
  const post = request(`${cluster.server}/api/v1/namespaces/${namespace}/configmaps`, {
    ...options,
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json", "content-length": "1000" },
  });
  post.on("error", () => undefined);
  await new Promise((resolve) => post.write("{", resolve));
  return post;
}
