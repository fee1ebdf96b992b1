/**
 * Writes what the last `make bench-lock` measured into the table of docs/lock.md:
 *   node bench/lock/table.ts
 */
import { readFileSync, writeFileSync } from "node:fs";
import { format } from "prettier";

interface Row {
  readonly library: string;
  readonly condition: string;
  readonly clients: number;
  readonly p50_ms: number | null;
  readonly p50_ratio_to_raw: number | null;
}

const HERE = import.meta.dirname;
const PAGE = `${HERE}/../../docs/lock.md`;
const [BEGIN, END] = ["<!-- bench-lock -->", "<!-- /bench-lock -->"];
/** As raw or ours is called in the results, and on the page. */
const TITLES: Readonly<Record<string, string>> = {
  lockedcron: "this one, `acquire`",
  "lockedcron by value": "this one, `tryAcquire`",
};
const COLUMNS = [
  ["healthy", 1],
  ["healthy", 32],
  ["one killed", 1],
  ["one stopped", 1],
] as const;

const rows = JSON.parse(readFileSync(`${HERE}/../out/lock.json`, "utf8")) as Row[];

/** A ratio means nothing where a cycle waits for a time-out: then the time itself. */
function cell(library: string, [condition, clients]: (typeof COLUMNS)[number]): string {
  const row = rows.find(
    (one) => one.library === library && one.condition === condition && one.clients === clients,
  );
  if (row === undefined) return "–";
  if (row.p50_ms === null || row.p50_ratio_to_raw === null) return "never comes back";
  if (row.p50_ms > 150) return `${(row.p50_ms / 1_000).toPrecision(2)} s a lock`;
  return row.p50_ratio_to_raw.toFixed(row.p50_ratio_to_raw < 10 ? 2 : 0);
}

const libraries = [...new Set(rows.map(({ library }) => library))].filter((one) => one !== "raw");
const table = [
  "| library | 1 client | 32 clients | one node dead | one node hung |",
  "| --- | --- | --- | --- | --- |",
  ...libraries.map((library) => {
    const cells = COLUMNS.map((column) => cell(library, column));
    return `| ${[TITLES[library] ?? library, ...cells].join(" | ")} |`;
  }),
];

const page = readFileSync(PAGE, "utf8");
const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
if (begin < 0 || end < begin) throw new Error(`docs/lock.md has no ${BEGIN} … ${END}`);
const text = `${page.slice(0, begin)}${BEGIN}\n\n${table.join("\n")}\n\n${page.slice(end)}`;
writeFileSync(PAGE, await format(text, { parser: "markdown", printWidth: 100 }));
