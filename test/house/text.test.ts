import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ConditionType, EventReason, Reason } from "../../src/api/reasons.ts";
import { lengthViolations, machineViolations, reasonViolations } from "../../tools/house/text.ts";
import { committedFiles } from "./files.ts";

const DOCS = path.resolve(import.meta.dirname, "../../docs");
const files = committedFiles();

describe("no file is too long to be read in one go", () => {
  it("in the project", () => {
    expect(lengthViolations(files)).toEqual([]);
  });

  it("or the check says so", () => {
    const long = { path: "src/kube/store.ts", text: "x\n".repeat(301) };
    expect(lengthViolations([long])).toEqual([
      "src/kube/store.ts: 301 lines, at most 300; split it by concept",
    ]);
    expect(lengthViolations([{ ...long, text: "x\n".repeat(300) }])).toEqual([]);
    expect(lengthViolations([{ ...long, path: "docs/long.md" }])).toEqual([]);
  });
});

describe("no committed file belongs to one machine", () => {
  const inText = (text: string) => machineViolations([{ path: "a.md", text: `first\n${text}` }]);
  const join = (...parts: string[]): string => parts.join("/");

  it("in the project", () => {
    expect(files.length).toBeGreaterThan(50);
    expect(machineViolations(files)).toEqual([]);
  });

  it.each([
    ["a home folder", join("", "home", "alice", "lockedcron")],
    ["root's home", `cd ${join("", "root", "src")}`],
    ["a Mac's", `"${join("", "Users", "alice", "x")}"`],
    ["a build host's", `(${join("", "work", "main")})`],
    ["a registry", `https://${["registry", "npmjs", "org"].join(".")}/x`],
    ["an address pinned by a lock file", '"resolved": "'.concat("http://10.0.0.1/x.tgz")],
  ])("or the check says so: %s", (_, text) => {
    expect(inText(text)).toEqual([expect.stringMatching(/^a\.md:2: holds /)]);
  });

  it.each(["a/work/b", "$HOME/work/x", "~/work/x", "/workqueue/x", "homework", "at /home"])(
    "and %s is nobody's machine",
    (text) => {
      expect(inText(text)).toEqual([]);
    },
  );
});

describe("every reason is documented", () => {
  it("in the project", () => {
    const reasons = [EventReason, ConditionType, Reason].flatMap((table) => Object.values(table));
    const page = readFileSync(path.join(DOCS, "reasons.md"), "utf8");
    expect(reasonViolations(reasons, page)).toEqual([]);
  });

  it("or the check says so, in both directions", () => {
    const page =
      "| reason | meaning |\n| --- | --- |\n| `Due`, `Late` | `Now` is not in column one |";
    expect(reasonViolations(["Due", "Lost"], page)).toEqual([
      "Lost has no row in docs/reasons.md",
      "docs/reasons.md explains Late, which is none",
    ]);
  });
});

it("docs/lock.md names tests that are there", () => {
  const page = readFileSync(path.join(DOCS, "lock.md"), "utf8");
  const named = [...page.matchAll(/\[([\w./, \n-]+)\](?!\()/g)].flatMap(([, names = ""]) =>
    names.split(/,\s*/),
  );
  expect(named).toContain("faults");
  const tests = new Set(files.map((file) => file.path));
  expect(named.filter((name) => !tests.has(`test/lock/${name}.test.ts`))).toEqual([]);
});

describe("decisions are numbered", () => {
  const numbers = (names: readonly string[]): string[] => names.map((name) => name.slice(0, 4));

  it("each with a number of its own, the one in its title", () => {
    const names = readdirSync(path.join(DOCS, "adr")).toSorted();
    expect(numbers(names)).toEqual(names.map((_, i) => String(i + 1).padStart(4, "0")));
    for (const name of names) {
      const title = readFileSync(path.join(DOCS, "adr", name), "utf8").split("\n")[0];
      expect(`${name}: ${title}`).toMatch(new RegExp(`: # ${Number(name.slice(0, 4))}\\. `));
    }
  });
});
