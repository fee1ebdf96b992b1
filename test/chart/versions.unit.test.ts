/** Which Kubernetes is supported is said in several places: always what is built and run. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { ROOT } from "../../tools/ci/command.ts";

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), "utf8");
const TOOLS = "test/cluster/tools";

/** Oldest first. */
const versions = readdirSync(join(ROOT, TOOLS))
  .filter((name) => name.startsWith("kubernetes"))
  .map((name) => /\sk8s\.io\/kubernetes v(\S+)/.exec(read(TOOLS, name, "go.mod"))?.[1] ?? name)
  .toSorted();
const minorOf = (version: string): string => version.split(".", 2).join(".");
const [oldest = "", newest = ""] = [versions[0], versions.at(-1)].map((v) => minorOf(v ?? ""));

it.each(["README.md", "docs/upgrade.md"])("%s names what was run", (page) => {
  expect(versions.length).toBeGreaterThan(2);
  const named = new RegExp(versions.join("(, | and )").replaceAll(".", "\\."));
  expect(read(page)).toMatch(named);
});

it.each(["docs/install.md", "charts/lockedcron/README.md", "README.md"])(
  "%s names the oldest",
  (page) => {
    expect(read(page)).toMatch(new RegExp(`Kubernetes ${oldest.replace(".", "\\.")}\\s`));
  },
);

it("the chart refuses what is older", () => {
  const { kubeVersion } = parse(read("charts/lockedcron/Chart.yaml")) as { kubeVersion: string };
  expect(kubeVersion).toBe(`>= ${oldest}.0-0`);
});

it("the oldest and the newest are those of make e2e-versions and of CI's kind", () => {
  expect(read("test/e2e/e2e.mk")).toContain(`KUBERNETES_VERSIONS := ${oldest} ${newest}\n`);
  const images = [...read(".github/workflows/ci.yaml").matchAll(/kindest\/node:v(\d+\.\d+)/g)];
  expect(images.map(([, minor]) => minor)).toEqual([oldest, newest]);
});
