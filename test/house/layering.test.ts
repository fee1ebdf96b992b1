import { describe, expect, it } from "vitest";
import { importsOf, LAYERS, layeringViolations } from "../../tools/house/layering.ts";
import { committedFiles } from "./files.ts";

const source = (path: string, text: string) => [{ path, text }];

describe("the project", () => {
  const files = committedFiles().filter((file) => /^src\/.*\.ts$/.test(file.path));

  it("has its imports going one way", () => {
    expect(files.length).toBeGreaterThan(10);
    expect(layeringViolations(files)).toEqual([]);
  });

  it("has layers without a cycle", () => {
    const visit = (layer: string, above: readonly string[]): string[] =>
      above.includes(layer)
        ? [[...above, layer].join(" → ")]
        : (LAYERS[layer] ?? [`no layer ${layer}`]).flatMap((next) =>
            visit(next, [...above, layer]),
          );
    expect(Object.keys(LAYERS).flatMap((layer) => visit(layer, []))).toEqual([]);
  });
});

describe("the check refuses", () => {
  it.each<[what: string, path: string, text: string, says: string]>([
    [
      "an import upwards",
      "src/domain/decide.ts",
      'import { x } from "../controller/x.ts";',
      "domain may not import controller",
    ],
    [
      "an import sideways, of a type only",
      "src/kube/store.ts",
      'import type {\n  Lock,\n} from "../lock/index.ts";',
      "kube may not import lock",
    ],
    [
      "an import from deep inside a layer",
      "src/lock/node/client.ts",
      'import { createMetrics } from "../../telemetry/index.ts";',
      "lock may not import telemetry",
    ],
    [
      "a re-export",
      "src/telemetry/index.ts",
      'export * from "../kube/index.ts";',
      "telemetry may not import kube",
    ],
    [
      "an import at run time",
      "src/api/names.ts",
      'const x = await import("../domain/x.ts");',
      "api may not import domain",
    ],
    [
      "an import for its effect",
      "src/controller/x.ts",
      'import "../operator.ts";',
      "controller may not import operator",
    ],
    ["I/O in domain", "src/domain/x.ts", 'import fs from "node:fs";', "domain may not use node:fs"],
    [
      "a package in domain",
      "src/domain/schedule/x.ts",
      'import cron from "node-cron";',
      "domain may not use node-cron",
    ],
    [
      "Kubernetes in lock",
      "src/lock/x.ts",
      'import { KubeConfig } from "@kubernetes/client-node";',
      "lock may not use @kubernetes/client-node",
    ],
    [
      "tests in src",
      "src/main.ts",
      'import "../test/x.ts";',
      "test/x.ts, which is not part of src",
    ],
    ["a folder that is no layer", "src/utils/x.ts", "", 'no layer "utils"'],
  ])("%s", (_, path, text, says) => {
    expect(layeringViolations(source(path, text))).toEqual([expect.stringContaining(says)]);
  });
});

describe("the check allows", () => {
  it.each<[what: string, path: string, text: string]>([
    ["an import downwards", "src/controller/x.ts", 'import { x } from "../lock/index.ts";'],
    ["an import within the layer", "src/lock/node/x.ts", 'import { x } from "../quorum.ts";'],
    ["the clock for everybody", "src/domain/x.ts", 'import type { Clock } from "../clock.ts";'],
    ["files that are not in src", "test/domain/x.ts", 'import { x } from "../../src/kube/x.ts";'],
    ["words in a comment", "src/domain/x.ts", '// ported from "kube": import nothing'],
  ])("%s", (_, path, text) => {
    expect(layeringViolations(source(path, text))).toEqual([]);
  });
});

it("every form of import is seen", () => {
  const text = [
    'import a from "./a.ts";',
    "import {\n  b,\n} from './b.ts';",
    'export { c } from "./c.ts";',
    'import type { D } from "./d.ts";',
    'import "./e.ts";',
    'const f = await import("./f.ts");',
  ].join("\n");
  const seen = importsOf(text).toSorted();
  expect(seen).toEqual(["./a.ts", "./b.ts", "./c.ts", "./d.ts", "./e.ts", "./f.ts"]);
});
