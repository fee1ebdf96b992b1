// Exit code 0 when node_modules holds what package-lock.json asks for. Plain JavaScript without any
// package: it runs before they are installed, on whatever Node the machine has.
import { existsSync, readFileSync } from "node:fs";

/** @param {string} file */
const packages = (file) => JSON.parse(readFileSync(file, "utf8")).packages;

// npm writes its hidden lock file last: an installation that was interrupted has none.
const HIDDEN = "node_modules/.package-lock.json";
if (!existsSync(HIDDEN) || !existsSync("node_modules/.bin/node")) process.exit(1);
const there = packages(HIDDEN);
const missing = Object.entries(packages("package-lock.json")).filter(
  ([path, wanted]) =>
    path !== "" && !wanted.optional && !wanted.link && there[path]?.version !== wanted.version,
);
if (missing.length > 0) process.exit(1);
