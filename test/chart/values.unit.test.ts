/** What can be said of the chart without Helm. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { chartReadme, valueRows } from "../../tools/chart/readme.ts";
import { valuesSchema } from "../../tools/chart/values-schema.ts";
import { ROOT } from "../../tools/ci/command.ts";

const CHART = path.join(ROOT, "charts/lockedcron");
const text = readFileSync(path.join(CHART, "values.yaml"), "utf8");
const values = parse(text) as Record<string, unknown>;

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** `redis.image.tag` for every property that has no properties of its own. */
function leaves(schema: Schema, prefix = ""): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    property.properties === undefined || name.endsWith("resources")
      ? [`${prefix}${name}`]
      : leaves(property, `${prefix}${name}.`),
  );
}

function valueAt(at: string): unknown {
  return at
    .split(".")
    .reduce<unknown>((value, name) => (value as Record<string, unknown>)?.[name], values);
}

describe("every value", () => {
  it("of the schema has a default and a row in the README, and the other way round", () => {
    const rows = valueRows(text).map((row) => row.path);
    expect(rows.toSorted()).toEqual(leaves(valuesSchema).toSorted());
    expect(rows.filter((row) => valueAt(row) === undefined)).toEqual([]);
  });

  it("is used by a template, or by none of them", () => {
    const folder = path.join(CHART, "templates");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const templates = files
      .filter((file) => /\.(yaml|tpl|txt)$/.test(file))
      .map((file) => readFileSync(path.join(folder, file), "utf8"))
      .join("\n");
    const unused = leaves(valuesSchema)
      .map((at) => at.split(".").at(-1) ?? "")
      .filter((name) => !templates.includes(`.${name}`));
    expect(unused).toEqual([]);
  });

  it("without an explanation is an error", () => {
    expect(() => valueRows("a:\n  # -- What a.b is.\n  b: 1\n  c: 2\n")).toThrow(
      'a.c has no comment that begins with "# -- "',
    );
  });
});

it("a bar in an explanation does not end the cell", () => {
  const readme = chartReadme("# -- one | two\na: 1\n", { version: "1.2.3" });
  expect(readme).toContain(String.raw`| \`a\` | \`1\` | one \| two |`.replaceAll("\\`", "`"));
});

it("chart, application and package have one version", () => {
  const about = parse(readFileSync(path.join(CHART, "Chart.yaml"), "utf8")) as Record<
    "version" | "appVersion",
    string
  >;
  const { version } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
    version: string;
  };
  expect(about).toMatchObject({ version, appVersion: version });
});
