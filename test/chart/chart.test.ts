/** The chart: what it refuses, what it renders, and that a real API server takes it. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { openCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { RBAC } from "../crd/fixture.ts";
import { CHART, HELMS, openHelm, render, type Helm, type HelmName } from "./helm.ts";
import { MATRIX, REFUSED } from "./matrix.ts";
import { STATIC_MANIFEST, staticManifest } from "./static.ts";

interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly rules?: readonly object[];
  readonly spec?: Template;
}

interface Template {
  readonly template?: { readonly spec: PodSpec };
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
}

interface PodSpec {
  readonly volumes?: readonly object[];
  readonly containers: readonly { readonly image: string; readonly args?: readonly string[] }[];
}

const SYSTEM = "lockedcron-system";
const MONITORING = [
  "--api-versions=monitoring.coreos.com/v1/ServiceMonitor",
  "--api-versions=monitoring.coreos.com/v1/PrometheusRule",
];

let helms: Record<HelmName, Helm>;
let cluster: ControlPlaneCluster;

beforeAll(async () => {
  helms = { helm: await openHelm("helm"), helm3: await openHelm("helm3") };
  cluster = await openCluster(inject("cluster").name);
  for (const name of [SYSTEM, "team-a", "team-b"]) {
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
    await cluster.kubectl(["apply", "--filename=-"], { stdin: JSON.stringify(namespace) });
  }
}, 600_000);
afterAll(async () => {
  await cluster.kubectl(["delete", "namespace", SYSTEM, "team-a", "team-b", "--wait=false"]);
});

function manifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

describe.each(HELMS)("%s", (name) => {
  it("finds nothing to complain about", async () => {
    const said = await helms[name](["lint", "--strict", CHART]);
    expect(said).toContain("1 chart(s) linted, 0 chart(s) failed");
  });

  it.each(REFUSED)("refuses %s and says what to write", async (_, values, says) => {
    await expect(render(helms[name], values)).rejects.toThrow(says);
  });

  it("passes on what is global, whatever it is", async () => {
    const text = await render(helms[name], { global: { storageClass: "x", other: { y: 1 } } });
    expect(text).toBe(await render(helms[name]));
  });
});

describe.each(Object.keys(MATRIX))("with values for: %s", (what) => {
  const values = MATRIX[what];

  it("the same bytes come out twice, and from both Helms the same objects", async () => {
    const text = await render(helms.helm, values);
    expect(await render(helms.helm, values)).toBe(text);
    const key = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;
    const sorted = (all: Manifest[]) => all.toSorted((a, b) => key(a).localeCompare(key(b)));
    expect(sorted(manifests(await render(helms.helm3, values)))).toEqual(sorted(manifests(text)));
  });

  it("the API server would take every object, and admit every pod", async () => {
    const all = manifests(await render(helms.helm, values));
    const list = (items: readonly object[]): string =>
      JSON.stringify({ apiVersion: "v1", kind: "List", items });
    const apply = ["apply", "--server-side", "--dry-run=server", "--validate=strict"];
    // A pod is refused while its service account is not there; so it is asked for without, below.
    const stdin = list(all.filter(({ kind }) => kind !== "Pod"));
    await cluster.kubectl([...apply, "--filename=-"], { stdin });
    const pods = all.flatMap(({ kind, metadata, spec }) => {
      const podSpec = kind === "Pod" ? spec : spec?.template?.spec;
      return podSpec === undefined ? [] : [podOf(metadata.name, podSpec, spec)];
    });
    expect(pods.length).toBeGreaterThan(0);
    // A Deployment is only warned of what its pods may not do; so the pods are asked for.
    const create = ["create", "--dry-run=server", "--validate=strict", "--filename=-"];
    const created = await cluster.kubectl(create, { stdin: list(pods) });
    expect(created.trim().split("\n")).toHaveLength(pods.length);
  });
});

/** The pod that a controller would make, volumes of a StatefulSet's claims included. */
function podOf(
  name: string,
  podSpec: object,
  { volumeClaimTemplates = [] }: Template = {},
): object {
  const {
    serviceAccountName: _,
    priorityClassName: __,
    ...rest
  } = podSpec as PodSpec & {
    serviceAccountName?: string;
    priorityClassName?: string;
  };
  const claimed = volumeClaimTemplates.map(({ metadata }) => ({
    name: metadata.name,
    emptyDir: {},
  }));
  const spec = { ...rest, volumes: [...(rest.volumes ?? []), ...claimed] };
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: SYSTEM }, spec };
}

describe("what is rendered", () => {
  it("kinds of the Prometheus operator only where there are such, or where asked for", async () => {
    const kinds = async (values: object, more: string[] = []) =>
      manifests(await render(helms.helm, values, more))
        .map(({ kind }) => kind)
        .filter((kind) => /Monitor|PrometheusRule/.test(kind))
        .toSorted();
    expect(await kinds({})).toEqual([]);
    expect(await kinds({}, MONITORING)).toEqual(["PrometheusRule", "ServiceMonitor"]);
    const on = { enabled: true };
    const all = { serviceMonitor: on, podMonitor: on, prometheusRule: on };
    expect(await kinds({ monitoring: all })).toEqual([
      "PodMonitor",
      "PrometheusRule",
      "ServiceMonitor",
    ]);
    const off = { serviceMonitor: { enabled: false }, prometheusRule: { enabled: false } };
    expect(await kinds({ monitoring: off }, MONITORING)).toEqual([]);
  });

  it("the namespaces whose mutexes all may use reach the operator, with rights there", async () => {
    const all = manifests(await render(helms.helm, MATRIX["mutexes of another namespace"]));
    const args = all.flatMap(({ spec }) => spec?.template?.spec.containers[0]?.args ?? []);
    expect(args).toContain("--shared-mutex-namespaces=team-a,team-b");
    // In team-a, which it watches, it has its rights anyway.
    const roles = all.filter(
      ({ kind, metadata }) => kind === "Role" && metadata.namespace === "team-b",
    );
    expect(roles.flatMap(({ rules }) => rules)).toEqual([
      expect.objectContaining({ resources: ["leases"] }),
    ]);
  });

  it("with a list of namespaces nothing grants rights beyond them", async () => {
    const values = { watchNamespaces: ["team-a", "team-b"], rbac: { aggregate: false } };
    const all = manifests(await render(helms.helm, values));
    expect(all.filter(({ kind }) => kind.startsWith("ClusterRole"))).toEqual([]);
    const places = all
      .filter(({ kind }) => kind === "Role")
      .map(({ metadata }) => metadata.namespace);
    expect(new Set(places)).toEqual(new Set([SYSTEM, "team-a", "team-b"]));
  });

  it("images come from where they are mirrored", async () => {
    const all = manifests(await render(helms.helm, MATRIX["air gap"]));
    const images = all.flatMap(({ kind, spec }) => {
      const pod = (kind === "Pod" ? spec : spec?.template?.spec) as PodSpec | undefined;
      return pod?.containers.map(({ image }) => image) ?? [];
    });
    const digest = `sha256:${"0".repeat(64)}`;
    expect(new Set(images)).toEqual(
      new Set([
        `registry.example.com/mirror/lockedcron/lockedcron@${digest}`,
        `other.example.com/valkey/valkey@${digest}`,
      ]),
    );
  });

  it("nothing that the operator writes: no data in the Secret of the passwords", async () => {
    const secrets = manifests(await render(helms.helm)).filter(({ kind }) => kind === "Secret");
    expect(secrets).toHaveLength(1);
    expect(Object.keys(secrets[0] ?? {}).toSorted()).toEqual([
      "apiVersion",
      "kind",
      "metadata",
      "type",
    ]);
  });

  it("the operator has the same rights as by deploy/rbac.yaml", async () => {
    const rulesOf = (text: string, kind: string, name: string) =>
      manifests(text).find((m) => m.kind === kind && m.metadata.name === name)?.rules;
    const [chart, file] = [await render(helms.helm), readFileSync(RBAC, "utf8")];
    const everywhere = rulesOf(chart, "ClusterRole", "lockedcron-operator");
    expect(everywhere).toEqual(rulesOf(file, "ClusterRole", "lockedcron-operator"));
    const own = rulesOf(chart, "Role", "lockedcron");
    expect(own).toEqual(rulesOf(file, "Role", "lockedcron-operator"));
    expect(everywhere).toBeDefined();
    expect(own).toBeDefined();
  });

  it("the CRD stays when the chart goes, unless asked otherwise", async () => {
    const policy = async (values: object) =>
      manifests(await render(helms.helm, values)).find(
        ({ kind }) => kind === "CustomResourceDefinition",
      )?.metadata.annotations?.["helm.sh/resource-policy"];
    expect(await policy({})).toBe("keep");
    expect(await policy({ crds: { keep: false } })).toBeUndefined();
  });
});

describe("deploy/install", () => {
  it("is what the chart renders", async () => {
    const want = await staticManifest(helms.helm);
    expect(readFileSync(STATIC_MANIFEST, "utf8") === want, "stale: run make manifests").toBe(true);
  });

  it("is accepted by kubectl alone", async () => {
    const folder = `${STATIC_MANIFEST}/..`;
    const said = await cluster.kubectl(["apply", "--dry-run=server", "--kustomize", folder]);
    expect(said).toContain("deployment.apps/lockedcron created (server dry run)");
  });
});
