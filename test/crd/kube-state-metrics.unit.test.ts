/** deploy/kube-state-metrics: what it reads is in the CRD, and what its rules and docs/migrate.md name is in it. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

const ROOT = resolve(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

interface Schema {
  type?: string;
  format?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}
interface Source {
  path?: string[];
  valueFrom?: string[];
  labelsFromPath?: Record<string, string[]>;
}
interface Metric {
  name: string;
  each: { type: "Gauge" | "Info"; gauge?: Source; info?: Source };
}
interface Config {
  spec: {
    resources: {
      groupVersionKind: object;
      metricNamePrefix: string;
      labelsFromPath: Record<string, string[]>;
      metrics: Metric[];
    }[];
  };
}

const crd = parse(read("crds/lockedcronjobs.yaml")) as {
  spec: {
    group: string;
    names: { kind: string };
    versions: { name: string; schema: { openAPIV3Schema: Schema } }[];
  };
};
const [version] = crd.spec.versions;
/** What every object has beside what the CRD says. */
const METADATA: Schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    namespace: { type: "string" },
    labels: { type: "object" },
    creationTimestamp: { type: "string", format: "date-time" },
  },
};
const object: Schema = {
  properties: { ...version?.schema.openAPIV3Schema.properties, metadata: METADATA },
};

function at(schema: Schema | undefined, path: readonly string[] = []): Schema | undefined {
  return path.reduce<Schema | undefined>((one, field) => one?.properties?.[field], schema);
}

const [resource] = (parse(read("deploy/kube-state-metrics/config.yaml")) as Config).spec.resources;
const metrics = resource?.metrics ?? [];
const names = metrics.map(({ name }) => `${resource?.metricNamePrefix}_${name}`);
/** Everything that looks like one of its metrics. */
const namesIn = (text: string): string[] => text.match(/\bkube_lockedcronjob_\w+/g) ?? [];

describe("deploy/kube-state-metrics/config.yaml", () => {
  test("is about the kind that the CRD has", () => {
    const { group, names: called } = crd.spec;
    const kind = { group, version: version?.name, kind: called.kind };
    expect(resource?.groupVersionKind).toEqual(kind);
    for (const path of Object.values(resource?.labelsFromPath ?? {})) {
      expect(at(object, path)?.type).toBe("string");
    }
  });

  test.each(metrics)("$name reads what is there, and a gauge a number", ({ each }) => {
    const source = each.gauge ?? each.info ?? {};
    const found = at(object, source.path);
    const item = found?.items ?? found;
    for (const path of Object.values(source.labelsFromPath ?? {})) {
      expect(at(item, path)?.type).toMatch(/^(string|object)$/);
    }
    if (each.type === "Info") return;
    const value = at(item, source.valueFrom);
    // It takes numbers, booleans, RFC 3339 times, and "True" and "False".
    const isCondition = source.path?.at(-1) === "conditions" && source.valueFrom?.[0] === "status";
    const isTime = value?.type === "string" && value.format === "date-time";
    const isNumber = value?.type === "integer" || value?.type === "boolean";
    expect(isCondition || isTime || isNumber).toBe(true);
  });
});

test("the rules ask for metrics that the config gives", () => {
  const asked = namesIn(read("deploy/kube-state-metrics/rules.yaml"));
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.filter((name) => !names.includes(name))).toEqual([]);
});

test("docs/migrate.md lists exactly the metrics that the config gives", () => {
  expect(new Set(namesIn(read("docs/migrate.md")))).toEqual(new Set(names));
});
