import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";

import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";

import { createKubeClient } from "../../src/kube/client.ts";
import { createEventRecorder } from "../../src/kube/events.ts";
import {
  customResourceDefinitions,
  jobs,
  type KubeObject,
  namespaces,
  resourceType,
} from "../../src/kube/resources.ts";
import type { KubeClient } from "../../src/kube/verbs.ts";
import { openCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { reflect } from "./reflecting.ts";
import {
  clientOf,
  type ConfigMap,
  configMaps,
  failureOf,
  kubeConfigOf,
  newNamespace,
} from "./support.ts";

let client: KubeClient;
let namespace: string;

beforeAll(async () => {
  client = clientOf(inject("cluster").kubeconfigPath);
  namespace = await newNamespace(client, "client");
});
afterAll(() => client[Symbol.asyncDispose]());

const map = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { name, namespace },
  data,
});

describe("create", () => {
  it("gives the object as the server made it", async () => {
    const created = await client.create(configMaps, map("made", { a: "1" }));
    expect(created).toMatchObject({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "made", namespace, uid: expect.any(String) as string },
      data: { a: "1" },
    });
    expect(await client.get(configMaps, { namespace, name: "made" })).toEqual(created);
  });

  it("can be answered with metadata alone, and under its own kind", async () => {
    const created = await client.create(configMaps, map("lean", { a: "1" }), {
      metadataOnly: true,
    });
    const whole = await client.get(configMaps, { namespace, name: "lean" });
    expect(whole.data).toEqual({ a: "1" });
    expect(created).toEqual({ ...whole, data: undefined });
    const changed = await client.update(configMaps, { ...whole, data: {} }, { metadataOnly: true });
    expect(changed.metadata.resourceVersion).not.toBe(whole.metadata.resourceVersion);
    expect(changed.data).toBeUndefined();
  });

  it("AlreadyExists: rejected", async () => {
    await client.create(configMaps, map("twice"));
    expect(await failureOf(client.create(configMaps, map("twice")))).toMatchObject({
      status: 409,
      reason: "AlreadyExists",
      outcome: "rejected",
      action: `create configmaps ${namespace}/twice`,
      details: { name: "twice", kind: "configmaps" },
    });
  });

  it("Invalid tells the field", async () => {
    const job = { metadata: { name: "bad", namespace }, spec: { template: { spec: {} } } };
    const failure = await failureOf(client.create(jobs, job));
    expect(failure).toMatchObject({ status: 422, reason: "Invalid", outcome: "rejected" });
    expect(failure.details?.causes?.map(({ field }) => field)).toContain(
      "spec.template.spec.containers",
    );
  });

  it("a dry run with strict validation finds a typo and leaves nothing", async () => {
    const typo = { ...map("dry"), dataa: {} };
    const options = { dryRun: true, fieldValidation: "Strict" } as const;
    const failure = await failureOf(client.create(configMaps, typo, options));
    expect(failure.message).toContain('unknown field "dataa"');
    await client.create(configMaps, map("dry"), options);
    expect((await failureOf(client.get(configMaps, { namespace, name: "dry" }))).status).toBe(404);
  });

  it("a namespace that is not there, or goes away: rejected", async () => {
    const nowhere = { metadata: { name: "x", namespace: "nowhere" } };
    expect(await failureOf(client.create(configMaps, nowhere))).toMatchObject({
      status: 404,
      outcome: "rejected",
    });
    const going = await newNamespace(client, "going");
    const held = { metadata: { name: "held", namespace: going, finalizers: ["example.com/wait"] } };
    await client.create(configMaps, held);
    await client.delete(namespaces, { name: going });
    const late = { metadata: { name: "late", namespace: going } };
    expect(await failureOf(client.create(configMaps, late))).toMatchObject({
      status: 403,
      reason: "Forbidden",
      outcome: "rejected",
      details: { causes: [{ reason: "NamespaceTerminating" }] },
    });
    const drop = { type: "merge", body: { metadata: { finalizers: null } } } as const;
    await client.patch(configMaps, { namespace: going, name: "held" }, drop);
  });
});

describe("update", () => {
  it("replaces, and meets a Conflict when the object has changed", async () => {
    const first = await client.create(configMaps, map("cas", { n: "1" }));
    const second = await client.update(configMaps, { ...first, data: { n: "2" } });
    expect(second.data).toEqual({ n: "2" });
    expect(
      await failureOf(client.update(configMaps, { ...first, data: { n: "3" } })),
    ).toMatchObject({
      status: 409,
      reason: "Conflict",
      outcome: "rejected",
    });
    expect((await client.get(configMaps, { namespace, name: "cas" })).data).toEqual({ n: "2" });
  });

  it("with the uid of a former namesake meets a Conflict", async () => {
    const first = await client.create(configMaps, map("namesake"));
    await client.delete(configMaps, { namespace, name: "namesake" });
    await client.create(configMaps, map("namesake"));
    expect((await failureOf(client.update(configMaps, first))).reason).toBe("Conflict");
  });

  it("of a hundred at the same version exactly one wins", async () => {
    const first = await client.create(configMaps, map("race"));
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, i) =>
        client.update(configMaps, { ...first, data: { winner: String(i) } }),
      ),
    );
    const won = results.filter(({ status }) => status === "fulfilled");
    expect(won).toHaveLength(1);
  });
});

describe("patch", () => {
  it("merge: the default of no one, it must be said", async () => {
    await client.create(configMaps, map("merge", { a: "1", b: "2" }));
    const key = { namespace, name: "merge" };
    const merged = await client.patch(configMaps, key, {
      type: "merge",
      body: { data: { a: null, c: "3" } },
    });
    expect(merged.data).toEqual({ b: "2", c: "3" });
  });

  it("json: with a test that fails", async () => {
    await client.create(configMaps, map("json", { a: "1" }));
    const key = { namespace, name: "json" };
    const body = [
      { op: "test", path: "/data/a", value: "2" },
      { op: "replace", path: "/data/a", value: "3" },
    ];
    expect(await failureOf(client.patch(configMaps, key, { type: "json", body }))).toMatchObject({
      status: 422,
      outcome: "rejected",
    });
  });

  it("apply: creates, and takes fields over only by force", async () => {
    const key = { namespace, name: "apply" };
    const body = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "apply" },
      data: { a: "1" },
    };
    await client.patch(configMaps, key, { type: "apply", body }, { fieldManager: "one" });
    const other = { type: "apply", body: { ...body, data: { a: "2" } } } as const;
    expect(
      await failureOf(client.patch(configMaps, key, other, { fieldManager: "two" })),
    ).toMatchObject({
      reason: "Conflict",
    });
    const forced = await client.patch(
      configMaps,
      key,
      { ...other, force: true },
      { fieldManager: "two" },
    );
    expect(forced.data).toEqual({ a: "2" });
  });

  it("strategic: adds to a list by its key", async () => {
    const container = { name: "a", image: "x" };
    await client.create(jobs, {
      metadata: { name: "strategic", namespace },
      spec: {
        suspend: true,
        template: { spec: { restartPolicy: "Never", containers: [container] } },
      },
    } as KubeObject);
    const key = { namespace, name: "strategic" };
    const status = { conditions: [{ type: "Example", status: "True" }] };
    const patch = { type: "strategic", body: { status } } as const;
    expect(await client.patch(jobs, key, patch, { subresource: "status" })).toMatchObject({
      status: {
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: "Example" }),
        ]) as unknown,
      },
    });
  });
});

describe("delete", () => {
  it("only the object that was meant", async () => {
    const { metadata } = await client.create(configMaps, map("meant"));
    const key = { namespace, name: "meant" };
    expect(
      await failureOf(client.delete(configMaps, key, { preconditions: { uid: "other" } })),
    ).toMatchObject({
      reason: "Conflict",
    });
    await client.delete(configMaps, key, { preconditions: { uid: metadata.uid ?? "" } });
    expect((await failureOf(client.delete(configMaps, key))).reason).toBe("NotFound");
  });
});

describe("list", () => {
  it("reads every page of one state, and what is asked for only", async () => {
    const many = await newNamespace(client, "many");
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        client.create(configMaps, {
          metadata: { name: `m${i}`, namespace: many, labels: { half: String(i % 2) } },
          data: { big: "x" },
        }),
      ),
    );
    const pages: number[] = [];
    const paged = clientOf(inject("cluster").kubeconfigPath, { onCall: () => void pages.push(1) });
    const all = await paged.list(configMaps, { namespace: many, pageSize: 7 });
    await paged[Symbol.asyncDispose]();
    const named = all.items.map(({ metadata }) => metadata.name);
    expect(named.filter((name) => name !== "kube-root-ca.crt")).toHaveLength(60);
    expect(new Set(named).size).toBe(named.length);
    expect(pages.length).toBeGreaterThanOrEqual(9);
    expect(all.items[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });

    const half = await client.list(configMaps, { namespace: many, labelSelector: "half=1" });
    expect(half.items).toHaveLength(30);
    const one = await client.list(configMaps, {
      namespace: many,
      fieldSelector: "metadata.name=m7",
    });
    expect(one.items).toHaveLength(1);
    const bare = await client.list(configMaps, {
      namespace: many,
      labelSelector: "half",
      metadataOnly: true,
      map: (object) => ({ metadata: { name: object.metadata.name ?? "", ...pick(object) } }),
    });
    expect(bare.items).toHaveLength(60);
    expect(bare.items.every(({ metadata }) => metadata.labels?.["hadData"] === "false")).toBe(true);
  });

  it("a kind that is not there, and one that is created later", async () => {
    const group = `g${process.pid}.example.com`;
    const widgets = resourceType(`${group}/v1`, "Widget", "widgets");
    expect(await failureOf(client.list(widgets))).toMatchObject({
      status: 404,
      outcome: "rejected",
    });
    await client.create(customResourceDefinitions, {
      metadata: { name: `widgets.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { kind: "Widget", plural: "widgets" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        ],
      },
    } as KubeObject);
    const list = await until("the new kind", 20_000, () =>
      client.list(widgets).catch(() => undefined),
    );
    expect(list.items).toEqual([]);
    await client.create(widgets, {
      metadata: { name: "w", namespace },
      spec: { deep: { er: 1 } },
    } as KubeObject);
    expect(await client.get(widgets, { namespace, name: "w" })).toMatchObject({
      spec: { deep: { er: 1 } },
    });
    await client.delete(customResourceDefinitions, { name: `widgets.${group}` });
  });
});

function pick({ data }: ConfigMap): { labels: Record<string, string> } {
  return { labels: { hadData: String(data !== undefined) } };
}

describe("credentials", () => {
  it("without the right to do it: Forbidden, until it is granted", async () => {
    const cluster = await openCluster(inject("cluster").name);
    const { path } = await cluster.userKubeconfig({ user: "visitor" });
    await using visitor = clientOf(path);
    expect(await failureOf(visitor.create(configMaps, map("visit")))).toMatchObject({
      status: 403,
      reason: "Forbidden",
      outcome: "rejected",
      message: expect.stringContaining('User "visitor" cannot create') as string,
    });
    await cluster.kubectl(["apply", "-f", "-"], {
      stdin: `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: visitor, namespace: ${namespace} }
rules: [{ apiGroups: [""], resources: [configmaps], verbs: [create] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: visitor, namespace: ${namespace} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: visitor }
subjects: [{ kind: User, name: visitor }]
`,
    });
    await until("the right", 10_000, () =>
      visitor.create(configMaps, map("visit")).catch(() => undefined),
    );
  });

  it("a server certificate of another CA: a TLS failure, nothing sent", async () => {
    await using stranger = createKubeClient({
      config() {
        const config = kubeConfigOf(inject("cluster").kubeconfigPath);
        config.clusters = config.clusters.map(({ name, server }) => ({
          name,
          server,
          skipTLSVerify: false,
        }));
        return config;
      },
    });
    expect(await failureOf(stranger.create(configMaps, map("tls")))).toMatchObject({
      status: 0,
      reason: "TLSFailure",
      outcome: "rejected",
    });
  });
});

it("through an HTTP proxy named in the kubeconfig: calls and watches", async () => {
  const tunnels: string[] = [];
  const proxy = createServer().on("connect", ({ url = "" }, socket) => {
    tunnels.push(url);
    const [host, port] = url.split(":");
    const upstream = connect(Number(port), host, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
    for (const end of [socket, upstream])
      end.on("error", () => [socket, upstream].map((s) => s.destroy()));
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", () => resolve()));
  const { port } = proxy.address() as AddressInfo;
  {
    await using proxied = createKubeClient({
      config() {
        const config = kubeConfigOf(inject("cluster").kubeconfigPath);
        const proxyUrl = `http://127.0.0.1:${port}`;
        config.clusters = config.clusters.map((entry) => ({ ...entry, proxyUrl }));
        return config;
      },
    });
    await using it = reflect({ client: proxied, type: configMaps, namespace });
    await it.inStep();
    await proxied.create(configMaps, map("proxied"));
    await it.told("+proxied");
  }
  proxy.close();
  expect(new Set(tunnels)).toEqual(new Set([new URL(inject("cluster").server).host]));
});

it("events are shown by kubectl describe, and their repetition is counted", async () => {
  const cluster = await openCluster(inject("cluster").name);
  const shown = await client.create(configMaps, map("eventful"));
  await using recorder = createEventRecorder({ client, component: "lockedcron", instance: "test" });
  recorder.event(shown, "Normal", "SuccessfulCreate", "Created job eventful-1");
  await recorder.flush(10_000);
  recorder.event(shown, "Normal", "SuccessfulCreate", "Created job eventful-1");
  await recorder.flush(10_000);
  expect(recorder.stats()).toMatchObject({ written: 2, dropped: 0 });
  const text = await cluster.kubectl(["describe", "configmap", "eventful", "-n", namespace]);
  expect(text).toMatch(
    /Normal\s+SuccessfulCreate\s+.*\(x2 over .*\)\s+lockedcron\s+Created job eventful-1/,
  );
});
