import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { customResourceDefinition, MAX_BYTES, render } from "../../tools/crd/crd.ts";
import { jobTemplateSchema } from "../../tools/crd/job-template.ts";
import {
  firstSentence,
  structuralSchema,
  type OpenApiDocument,
  type OpenApiSchema,
  type StructuralSchema,
} from "../../tools/crd/openapi.ts";
import { extractFromModule, EXTRACT, readExtract } from "../../tools/crd/source.ts";

const CRD = path.resolve(import.meta.dirname, "../../crds/lockedcronjobs.yaml");
const GENERATE = path.resolve(import.meta.dirname, "../../tools/crd/generate.ts");

describe("node tools/crd/generate.ts", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), "crd-"));
  });
  afterAll(() => rm(dir, { recursive: true }));

  const generate = async (...args: string[]): Promise<{ code: number; output: string }> => {
    try {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [GENERATE, ...args]);
      return { code: 0, output: stdout + stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, output: stdout + stderr };
    }
  };

  test("--check passes for the file in the tree", async () => {
    expect(await generate("--check")).toMatchObject({ code: 0 });
  });

  test("--check fails for a stale file, names the line, and leaves it as it is", async () => {
    const file = path.join(dir, "stale.yaml");
    const fresh = await readFile(CRD, "utf8");
    const line = fresh.split("\n").findIndex((text) => text.includes("maximum: 3600")) + 1;
    const stale = fresh.replace("maximum: 3600", "maximum: 7200");
    await writeFile(file, stale);
    const { code, output } = await generate("--check", "--crd", file);
    expect(code).toBe(1);
    expect(output).toContain(`stale.yaml is stale: line ${line} is`);
    expect(output).toContain("make generate");
    expect(await readFile(file, "utf8")).toBe(stale);
  });

  test("--check fails for a file cut short, and for one that is not there", async () => {
    const file = path.join(dir, "short.yaml");
    const fresh = await readFile(CRD, "utf8");
    await writeFile(file, fresh.slice(0, fresh.lastIndexOf("\n", fresh.length - 2) + 1));
    expect(await generate("--check", "--crd", file)).toMatchObject({ code: 1 });
    const { code, output } = await generate("--check", "--crd", path.join(dir, "none.yaml"));
    expect(code).toBe(1);
    expect(output).toContain("none.yaml does not exist");
  });

  test("a wrong flag is refused with exit code 2", async () => {
    const { code, output } = await generate("--chek");
    expect(code).toBe(2);
    expect(output).toContain("--chek");
  });
});

test("the extract is that of the Go module, where it is at hand", async (context) => {
  const module = extractFromModule();
  if ("unavailable" in module) return context.skip(module.unavailable);
  expect(module.text === (await readFile(EXTRACT, "utf8"))).toBe(true);
});

describe("the manifest", () => {
  const manifest = customResourceDefinition(readExtract());

  test("is what the YAML says", async () => {
    expect(parse(await readFile(CRD, "utf8"))).toEqual(JSON.parse(JSON.stringify(manifest)));
  });

  test(`has at most ${MAX_BYTES} bytes, as JSON and as a file`, async () => {
    expect(JSON.stringify(manifest).length).toBeLessThanOrEqual(MAX_BYTES);
    expect((await readFile(CRD)).length).toBeLessThanOrEqual(MAX_BYTES);
  });

  test("that grows beyond it is refused", () => {
    const extract = readExtract();
    const container = extract.components.schemas["io.k8s.api.core.v1.Container"]!;
    container.properties!["image"]!.description = "x".repeat(40_000);
    expect(() => render(extract)).toThrow(/The CRD has \d+ bytes as JSON, more than 235000/);
  });

  test("can stand in a Helm template", async () => {
    expect(await readFile(CRD, "utf8")).not.toContain("{{");
  });
});

describe("a new Kubernetes version that says something new stops the generator", () => {
  const withChange = (change: (schemas: Record<string, OpenApiSchema>) => void) => {
    const extract = readExtract();
    change(extract.components.schemas);
    return () => jobTemplateSchema(extract);
  };
  const container = "io.k8s.api.core.v1.Container";

  test.each<[string, (schemas: Record<string, OpenApiSchema>) => void, string]>([
    [
      "a keyword",
      (schemas) =>
        Object.assign(schemas[container]!.properties!["image"]!, { "x-kubernetes-new": 1 }),
      "JobTemplateSpec.spec.template.spec.containers[].image: cannot translate x-kubernetes-new: 1",
    ],
    [
      "a format",
      (schemas) => Object.assign(schemas[container]!.properties!["image"]!, { format: "uri" }),
      'image: cannot translate format: "uri"',
    ],
    [
      "a union",
      (schemas) =>
        Object.assign(schemas[container]!.properties!["image"]!, { oneOf: [{ type: "string" }] }),
      "image: cannot translate oneOf",
    ],
    [
      "a schema that contains itself",
      (schemas) => {
        schemas[container]!.properties!["child"] = {
          $ref: `#/components/schemas/${container}`,
        };
      },
      `containers[].child: ${container} contains itself`,
    ],
    [
      "a reference to nowhere",
      (schemas) => delete schemas["io.k8s.api.core.v1.Probe"],
      "the document has no schema io.k8s.api.core.v1.Probe",
    ],
    [
      "a field gone that a rule is about",
      (schemas) => delete schemas["io.k8s.api.batch.v1.JobSpec"]!.properties!["manualSelector"],
      "jobTemplate has no spec.manualSelector",
    ],
    [
      "a field no longer required",
      (schemas) => delete schemas["io.k8s.api.core.v1.HTTPHeader"]!.required,
      "HTTPHeader does not require value",
    ],
  ])("%s", (_, change, message) => {
    expect(withChange(change)).toThrow(message);
  });
});

describe("a list-map", () => {
  const document = (port: OpenApiSchema, required: string[] = []): OpenApiDocument => ({
    components: {
      schemas: {
        Ports: {
          type: "array",
          items: { type: "object", properties: { port }, required },
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["port"],
        },
      },
    },
  });
  const portOf = (schema: StructuralSchema) => schema.items!.properties!["port"];

  test("keeps the default of a key that is not required, and drops other defaults", () => {
    const optional = structuralSchema(document({ type: "integer", default: 80 }), "Ports", {});
    expect(portOf(optional)).toEqual({ type: "integer", default: 80 });
    const required = structuralSchema(
      document({ type: "integer", default: 80 }, ["port"]),
      "Ports",
      {},
    );
    expect(portOf(required)).toEqual({ type: "integer" });
  });

  test("is refused when its key may be absent", () => {
    expect(() => structuralSchema(document({ type: "integer" }), "Ports", {})).toThrow(
      "Ports: the list key port is neither required nor has a default",
    );
  });
});

test.each([
  ["One. Two.", "One."],
  ["One sentence only", "One sentence only"],
  ["Paths, e.g. /tmp, are kept. More.", "Paths, e.g. /tmp, are kept."],
  ["Either (i.e. this) or that. More.", "Either (i.e. this) or that."],
  ["Version 1.5 of it. More.", "Version 1.5 of it."],
  ["Wrapped\nlines. More.", "Wrapped lines."],
  ["A paragraph\n\nAnother.", "A paragraph"],
])("firstSentence(%j)", (text, sentence) => {
  expect(firstSentence(text)).toBe(sentence);
});
