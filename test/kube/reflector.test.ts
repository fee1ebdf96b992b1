import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";

import { createKubeClient } from "../../src/kube/client.ts";
import {
  customResourceDefinitions,
  type KubeObject,
  resourceType,
} from "../../src/kube/resources.ts";
import { labelIndex, ownerUidIndex } from "../../src/kube/store.ts";
import type { KubeClient } from "../../src/kube/verbs.ts";
import { type ControlPlaneCluster, openCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import { startCutProxy } from "./cut-proxy.ts";
import { reflect, type Reflecting } from "./reflecting.ts";
import { clientOf, type ConfigMap, configMaps, kubeConfigOf, newNamespace } from "./support.ts";

let cluster: ControlPlaneCluster;
let client: KubeClient;
let namespace: string;

/** Of this file's objects; a namespace has one of its own. */
const labelSelector = "mine";

/** Watches a namespace in which nothing happens, from the first test to the last: bookmarks come about every minute. */
let quiet: Reflecting<ConfigMap>;

beforeAll(async () => {
  cluster = await openCluster(inject("cluster").name);
  client = clientOf(cluster.kubeconfigPath);
  namespace = await newNamespace(client, "quiet");
  quiet = reflect({ client, type: configMaps, namespace, labelSelector });
  await quiet.inStep();
});
afterAll(async () => {
  await quiet?.[Symbol.asyncDispose]();
  await client[Symbol.asyncDispose]();
});
beforeEach(async () => {
  namespace = await newNamespace(client, "reflector");
});

const put = (name: string, labels: Record<string, string> = {}): Promise<ConfigMap> =>
  client.create(configMaps, {
    metadata: { name, namespace, labels: { mine: "", ...labels } },
    data: { n: "1" },
  });

const change = (name: string, body: object): Promise<ConfigMap> =>
  client.patch(configMaps, { namespace, name }, { type: "merge", body });

const remove = (name: string): Promise<void> => client.delete(configMaps, { namespace, name });

describe("while all is well", () => {
  it("shows what is there, page by page, and then every change", async () => {
    await Promise.all(["a", "b", "c", "d", "e", "f", "g"].map((name) => put(name)));
    await using it = reflect({ client, type: configMaps, namespace, labelSelector, pageSize: 2 });
    await it.inStep();
    expect([...it.changes].sort()).toEqual(["+a", "+b", "+c", "+d", "+e", "+f", "+g"]);
    it.changes.length = 0;
    await put("h");
    await change("a", { data: { n: "2" } });
    await remove("b");
    await it.told("-b");
    expect(it.changes).toEqual(["+h", "~a", "-b"]);
    expect(it.reflector.store.get(`${namespace}/a`)?.data).toEqual({ n: "2" });
    expect(it.reflector.store.get(`${namespace}/a`)?.metadata.managedFields).toBeUndefined();
    expect(it.reflector.store.size).toBe(7);
    expect(it.troubles).toEqual([]);
    expect(it.reflector.health()).toMatchObject({ synced: true, watching: true });
  });

  it("an object that leaves the selection is deleted, one that enters it is added", async () => {
    await put("a", { team: "x" });
    await put("b", { team: "y" });
    await using it = reflect({ client, type: configMaps, namespace, labelSelector: "team=x" });
    await it.inStep();
    await change("a", { metadata: { labels: { team: "y" } } });
    await change("b", { metadata: { labels: { team: "x" } } });
    await it.told("+b");
    expect(it.changes).toEqual(["+a", "-a", "+b"]);
  });

  it("indexes by owner and by label", async () => {
    const owner = await put("owner");
    const { uid = "" } = owner.metadata;
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid }];
    await client.create(configMaps, {
      metadata: { name: "owned", namespace, labels: { mine: "", team: "x" }, ownerReferences },
    });
    const indexes = { owner: ownerUidIndex, team: labelIndex("team") };
    await using it = reflect({ client, type: configMaps, namespace, labelSelector, indexes });
    await it.inStep();
    const named = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name);
    expect(named(it.reflector.store.by("owner", uid))).toEqual(["owned"]);
    expect(named(it.reflector.store.by("team", "x"))).toEqual(["owned"]);
    await change("owned", { metadata: { labels: { team: "y" } } });
    await it.told("~owned");
    expect(named(it.reflector.store.by("team", "x"))).toEqual([]);
    expect(named(it.reflector.store.by("team", "y"))).toEqual(["owned"]);
  });

  it("metadata only: no data is sent, by list or watch; a transform keeps what is needed", async () => {
    await put("a");
    const seen: unknown[] = [];
    await using it = reflect<ConfigMap>({
      client,
      type: configMaps,
      namespace,
      labelSelector,
      metadataOnly: true,
      transform(object) {
        seen.push(object.data);
        const { name, namespace, uid, resourceVersion } = object.metadata;
        return { metadata: { name, namespace, uid, resourceVersion } as ConfigMap["metadata"] };
      },
    });
    await it.inStep();
    await put("b");
    await it.told("+b");
    expect(seen).toEqual([undefined, undefined]);
    expect(Object.keys(it.reflector.store.get(`${namespace}/b`) ?? {})).toEqual(["metadata"]);
  });

  it("a watch that the server ends is taken up again, and every event comes once", async () => {
    const watches: string[] = [];
    await using it = reflect({
      type: configMaps,
      namespace,
      labelSelector,
      client: {
        list: (type, options) => client.list(type, options),
        watch: (type, request) => {
          watches.push(request.resourceVersion);
          // The server ends it after a second, again and again.
          return client.watch(type, { ...request, timeoutSeconds: 1 });
        },
      },
    });
    await it.inStep();
    const told: string[] = [];
    for (let i = 0; watches.length < 4; i++) {
      await put(`n${i}`);
      await it.told(`+n${i}`);
      told.push(`+n${i}`);
    }
    expect(it.changes).toEqual(told);
    // From where the last one ended, not from the list on.
    expect(Number(watches.at(-1))).toBeGreaterThan(Number(watches[0]));
    expect(it.troubles).toEqual([]);
  });

  it("after disposal nothing is told", async () => {
    const it = reflect({ client, type: configMaps, namespace, labelSelector });
    await it.inStep();
    await it[Symbol.asyncDispose]();
    await put("late");
    await client.list(configMaps, { namespace });
    expect(it.changes).toEqual([]);
    expect(it.reflector.health().watching).toBe(false);
  });
});

describe("when the connection fails", () => {
  it("cut in mid-watch: goes on where it was, without a new list", async () => {
    await using proxy = await startCutProxy(cluster.server);
    const lists: string[] = [];
    await using through = clientOf(cluster.kubeconfigPath, {
      port: proxy.port,
      onCall: ({ verb }) => void lists.push(verb),
    });
    await put("a");
    await using it = reflect({ client: through, type: configMaps, namespace, labelSelector });
    await it.inStep();
    for (let round = 0; round < 5; round++) {
      await it.inStep();
      const trouble = it.trouble("ConnectionLost");
      proxy.cut();
      await put(`n${round}`);
      await it.told(`+n${round}`);
      await trouble;
    }
    expect(it.changes).toEqual(["+a", "+n0", "+n1", "+n2", "+n3", "+n4"]);
    expect(lists).toEqual(["list"]);
    expect(it.recoveries()).toBeGreaterThanOrEqual(5);
    expect(it.reflector.health().lastError).toBeUndefined();
  });

  it("away for a while: says so, and then shows what happened meanwhile, deletions too", async () => {
    await using proxy = await startCutProxy(cluster.server);
    await using through = clientOf(cluster.kubeconfigPath, { port: proxy.port });
    await Promise.all([put("stays"), put("goes"), put("changes")]);
    await using it = reflect({ client: through, type: configMaps, namespace, labelSelector });
    await it.inStep();
    await proxy.refuse();
    await it.trouble("ConnectionRefused");
    const { store, health } = it.reflector;
    const freshAsOf = store.freshAsOf();
    expect(health()).toMatchObject({
      synced: true,
      watching: false,
      lastError: { reason: "ConnectionRefused" },
    });
    it.changes.length = 0;
    await Promise.all([remove("goes"), change("changes", { data: { n: "2" } }), put("comes")]);
    expect(store.freshAsOf()).toBe(freshAsOf);
    await proxy.listen();
    await Promise.all([it.told("+comes"), it.told("~changes"), it.told("-goes")]);
    expect(it.changes).toHaveLength(3);
    expect(store.freshAsOf()).toBeGreaterThan(freshAsOf);
  });

  it("a black hole on a connection that stays open is found", async () => {
    await using proxy = await startCutProxy(cluster.server);
    await using through = clientOf(cluster.kubeconfigPath, { port: proxy.port });
    await using it = reflect({ client: through, type: configMaps, namespace, labelSelector });
    await it.inStep();
    proxy.freeze();
    await put("unseen");
    await it.told("+unseen");
    expect(it.troubles).toEqual(["ConnectionLost"]);
  });
});

describe("when we may not", () => {
  it("403 until the right is granted, then in step", async () => {
    const user = `reader-${namespace}`;
    const { path } = await cluster.userKubeconfig({ user });
    await using reader = clientOf(path);
    await put("a");
    await using it = reflect({ client: reader, type: configMaps, namespace, labelSelector });
    await it.trouble("Forbidden");
    expect(it.reflector.health().lastError?.message).toContain("cannot list");
    const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader, namespace: ${namespace} }
rules: [{ apiGroups: [""], resources: [configmaps], verbs: [list, watch] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader, namespace: ${namespace} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects: [{ kind: User, name: ${user} }]
`;
    await cluster.kubectl(["apply", "-f", "-"], { stdin: role });
    await it.told("+a");
    expect(it.reflector.health().lastError).toBeUndefined();
  });

  it("401 until there is a good token; a rotated one is taken up", async () => {
    const dir = await mkdtemp(join(tmpdir(), "lockedcron-token-"));
    const tokenFile = join(dir, "token");
    // As the kubelet does it: the file is replaced, never half written.
    const write = async (token: string): Promise<void> => {
      await writeFile(`${tokenFile}.new`, token);
      await rename(`${tokenFile}.new`, tokenFile);
    };
    const issue = async (): Promise<string> => {
      await cluster.kubectl(["create", "serviceaccount", "op", "-n", namespace]);
      return await cluster.kubectl(["create", "token", "op", "-n", namespace]);
    };
    const account = `--serviceaccount=${namespace}:op`;
    const binding = ["create", "rolebinding", "op", "-n", namespace, "--clusterrole=view", account];
    await cluster.kubectl(binding);
    await write("garbage");
    await put("a");
    await using bearer = createKubeClient({
      config() {
        const config = kubeConfigOf(cluster.kubeconfigPath);
        const user = config.getCurrentUser()?.name ?? "";
        config.users = [{ name: user, authProvider: { name: "tokenFile", config: { tokenFile } } }];
        return config;
      },
    });
    await using it = reflect({ client: bearer, type: configMaps, namespace, labelSelector });
    await it.trouble("Unauthorized");
    await write(await issue());
    await it.told("+a");

    // The account is another one now; its old token is worth nothing once the server notices.
    await cluster.kubectl(["delete", "serviceaccount", "op", "-n", namespace]);
    const fresh = await issue();
    await until("the end of the old token", 60_000, async () => {
      const answer = bearer.get(configMaps, { namespace, name: "a" });
      return await answer.then(
        () => false,
        (error: unknown) => (error as { status: number }).status === 401,
      );
    });
    await write(fresh);
    await until("a read with the new token", 30_000, () =>
      bearer.get(configMaps, { namespace, name: "a" }).catch(() => undefined),
    );
    await put("b");
    await it.told("+b");
    expect(it.reflector.health()).toMatchObject({ synced: true, watching: true });
    await rm(dir, { recursive: true });
  });

  it("a kind that is not there: says so, shows it once it is, and survives its end", async () => {
    const group = `${namespace}.example.com`;
    const things = resourceType(`${group}/v1`, "Thing", "things");
    const define = (): Promise<KubeObject> =>
      client.create(customResourceDefinitions, {
        metadata: { name: `things.${group}` },
        spec: {
          group,
          scope: "Namespaced",
          names: { kind: "Thing", plural: "things" },
          versions: [
            {
              name: "v1",
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: "object" } },
            },
          ],
        },
      } as KubeObject);
    const create = (name: string): Promise<KubeObject> =>
      until("the kind", 30_000, () =>
        client.create(things, { metadata: { name, namespace } }).catch(() => undefined),
      );
    await using it = reflect({ client, type: things });
    await it.trouble("NotFound");
    expect(it.reflector.health()).toMatchObject({ synced: false });
    await define();
    await create("one");
    await it.told("+one");
    await client.delete(customResourceDefinitions, { name: `things.${group}` });
    await it.told("-one");
    await it.trouble("NotFound");
    await until("the end of the kind", 30_000, () =>
      client.get(customResourceDefinitions, { name: `things.${group}` }).then(
        () => false,
        () => true,
      ),
    );
    await define();
    await create("two");
    await it.told("+two");
    await client.delete(customResourceDefinitions, { name: `things.${group}` });
  });
});

it("a quiet watch brings bookmarks, and they keep the store fresh", async () => {
  const { store, health } = quiet.reflector;
  // Of the list it is when that was sent, of a bookmark when it came, which is the last that was heard.
  await until("a bookmark", 90_000, () => store.freshAsOf() === health().lastContact);
  expect(quiet.changes).toEqual([]);
  expect(quiet.troubles).toEqual([]);
});
