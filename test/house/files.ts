import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import type { SourceFile } from "../../tools/house/layering.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

/** Every committed text file of the project. */
export function committedFiles(): SourceFile[] {
  const listed = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" });
  return listed
    .split("\0")
    .filter((name) => name !== "" && existsSync(path.join(ROOT, name)))
    .map((name) => ({ path: name, text: readFileSync(path.join(ROOT, name), "utf8") }))
    .filter((file) => !file.text.includes("\0"));
}
