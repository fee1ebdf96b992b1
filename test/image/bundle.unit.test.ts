/** The code in the image: small, the same each time, whole, and under licences that allow it. */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT } from "../../tools/ci/command.ts";
import { bundle, type Bundle } from "../../tools/image/bundle.ts";
import { packagesOf } from "../../tools/image/third-party.ts";
import { sbom } from "./sbom.ts";

const run = promisify(execFile);
/** Permissive, and none that asks for more than to be named. */
const ALLOWED = new Set(["MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "Unlicense"]);
const MAX_BYTES = 25 * 1024 * 1024;

let dir: string;
let made: Bundle;

beforeAll(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "lockedcron-bundle-"));
  made = await bundle(path.join(dir, "one"));
}, 120_000);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .toSorted();

const node = (...args: string[]) =>
  run(process.execPath, args, { cwd: dir, env: { PATH: "/nonexistent" } });

it("is below the 25 MB that it may have", () => {
  const size = filesIn(path.join(dir, "one")).reduce((sum, file) => sum + statSync(file).size, 0);
  expect(size).toBeLessThan(MAX_BYTES);
  expect(size).toBeGreaterThan(1024 * 1024);
});

it("comes out the same twice", async () => {
  await bundle(path.join(dir, "two"));
  const contents = (folder: string) =>
    filesIn(folder).map((file) => [path.relative(folder, file), readFileSync(file, "utf8")]);
  expect(contents(path.join(dir, "two"))).toEqual(contents(path.join(dir, "one")));
}, 120_000);

it("needs no node_modules: operator and CLI run from it alone", async () => {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
    version: string;
  };
  expect((await node("one/dist/main.js", "--version")).stdout).toBe(`${version}\n`);
  const next = ["next", "--schedule=0 9 * * *", "--time-zone=Europe/Berlin", "--count=1"];
  const { stdout } = await node("one/dist/cli.js", ...next, "--after=2026-11-30T00:00:00Z");
  expect(stdout).toBe("2026-11-30T08:00:00Z\n");
  const help = await node("one/dist/cli.js", "check", "--help");
  expect(help.stdout).toContain("Usage: lockedcron check");
});

it("has each script that is read at run time", () => {
  const scripts = (folder: string) =>
    readdirSync(folder)
      .filter((file) => file.endsWith(".lua"))
      .toSorted();
  const here = scripts(path.join(ROOT, "src/lock/scripts"));
  expect(scripts(path.join(dir, "one/dist/scripts"))).toEqual(here);
  expect(here.length).toBeGreaterThan(3);
});

it("holds packages of licences that allow it, each named with its text", async () => {
  const bom = JSON.parse(await sbom(ROOT, { version: "1.2.3", packages: made.packages })) as {
    components: { name: string; licenses?: { expression: string }[]; hashes?: object[] }[];
  };
  const bad = bom.components.filter(
    ({ licenses }) => !ALLOWED.has(licenses?.[0]?.expression ?? "none"),
  );
  expect(bad).toEqual([]);
  expect(bom.components.filter(({ hashes }) => hashes === undefined)).toEqual([]);
  const page = readFileSync(path.join(dir, "one/THIRD-PARTY.md"), "utf8");
  for (const { name } of bom.components) expect(page).toContain(`\n## ${name} `);
});

it("knows a package by the path of its modules, nested ones too", () => {
  expect(
    packagesOf([
      "/x/src/main.ts",
      "/x/node_modules/b/index.js",
      "\0/x/node_modules/b/other.js?commonjs",
      "/x/node_modules/@a/c/node_modules/d/index.js",
    ]),
  ).toEqual(["node_modules/@a/c/node_modules/d", "node_modules/b"]);
});
