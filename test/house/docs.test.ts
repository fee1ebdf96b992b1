import { existsSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { committedFiles } from "./files.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const files = committedFiles();
const pages = files.filter((file) => file.path.endsWith(".md"));

it("every metric that a page, an alert or a dashboard names is one of ours", () => {
  const namesIn = (text: string): string[] => text.match(/\blockedcron_[a-z]+_[a-z_]+/g) ?? [];
  const listed = files.find((file) => file.path === "docs/metrics.md")?.text ?? "";
  const known = new Set(namesIn(listed.split("## What to watch")[0] ?? ""));
  expect(known.size).toBeGreaterThan(30);
  const unknown = [...pages, ...files.filter(({ path: at }) => /^(charts|deploy)\//.test(at))]
    .flatMap((file) => namesIn(file.text).map((name) => ({ file: file.path, name })))
    .filter(({ name }) => !known.has(name) && !known.has(name.replace(/_(bucket|count|sum)$/, "")));
  expect(unknown).toEqual([]);
});

it("every link of a page to a file leads to one", () => {
  const broken = pages.flatMap((page) =>
    [...page.text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => !existsSync(path.join(ROOT, path.dirname(page.path), target)))
      .map((target) => `${page.path}: ${target}`),
  );
  expect(broken).toEqual([]);
});
