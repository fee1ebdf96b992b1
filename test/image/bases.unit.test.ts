/** A release says what it is built on, by content, or is not made. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../../tools/ci/command.ts";
import { baseNames, digestsFor } from "./bases.ts";

const node = `sha256:${"1".repeat(64)}`;
const runtime = `sha256:${"2".repeat(64)}`;
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

describe("a release", () => {
  it("is built on two digests, or on stand-ins that were asked for", () => {
    expect(digestsFor({ NODE_DIGEST: node, RUNTIME_DIGEST: runtime })).toEqual({ node, runtime });
    expect(digestsFor({ BASES: "stand-ins" })).toBeUndefined();
  });

  it.each([
    ["nothing", {}, "NODE_DIGEST=: a release pins its base images; write NODE_DIGEST=sha256:"],
    ["one of two", { NODE_DIGEST: node }, "RUNTIME_DIGEST=: a release pins"],
    [
      "a tag",
      { NODE_DIGEST: node, RUNTIME_DIGEST: "nonroot" },
      "RUNTIME_DIGEST=nonroot: a release",
    ],
    ["both", { BASES: "stand-ins", NODE_DIGEST: node }, "write one of them"],
    ["another word", { BASES: "alpine" }, "BASES=alpine: write stand-ins"],
  ])("is refused with %s", (_, env, says) => {
    expect(() => digestsFor(env)).toThrow(says);
  });

  it("gets both from the workflow that makes it, for the archive and for what is pushed", () => {
    const workflow = read(".github/workflows/release.yaml");
    for (const name of ["NODE", "RUNTIME"]) {
      const value = `${name}_DIGEST=\${{ steps.bases.outputs.${name.toLowerCase()} }}`;
      expect(workflow.split(value)).toHaveLength(3);
    }
  });
});

it("each stage of the Dockerfile can be pinned, and no base is a moving name", async () => {
  const from = [...read("Dockerfile").matchAll(/^FROM .*$/gm)].map(([line]) => line);
  const pinned = (name: string) => `\${${name}_IMAGE}\${${name}_DIGEST:+@\${${name}_DIGEST}}`;
  expect(from).toEqual([
    `FROM --platform=$BUILDPLATFORM ${pinned("NODE")} AS bundle`,
    `FROM ${pinned("RUNTIME")}`,
  ]);
  const names = await baseNames();
  expect(names.node).toMatch(/:\d+\.\d+\.\d+-/);
  // Distroless has no tags of versions: the digest alone tells.
  expect(names.runtime).toMatch(/nodejs\d+-debian\d+:nonroot$/);
});
