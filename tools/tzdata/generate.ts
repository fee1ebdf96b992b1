/**
 * Writes src/domain/schedule/tzdata.json from a compiled tz database.
 *
 *   node tools/tzdata/generate.ts --from DIR   write it; DIR is a zoneinfo folder of a whole release, such as that of
 *                                              Debian's package tzdata or of the Python package tzdata
 *   node tools/tzdata/generate.ts              say which release the file has, and whether this machine has a newer one
 *   node tools/tzdata/generate.ts --check      only compare the file with itself, read and written: exit code 1 when it
 *                                              was edited by hand
 */
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import {
  decodeZone,
  encodeZone,
  type YearlyRule,
  type ZoneTable,
} from "../../src/domain/schedule/tz-table.ts";
import { changesIn } from "../../src/domain/schedule/zone.ts";
import { staleness } from "../crd/generate.ts";
import { readPosixRule } from "./posix-rule.ts";
import { readTzif, type TzifZone } from "./tzif.ts";

const FILE = path.resolve(import.meta.dirname, "../../src/domain/schedule/tzdata.json");
const HOST = "/usr/share/zoneinfo";
/** Names that stand for other things than a zone, or that mean something else on each host. */
const NO_ZONES = /^(?:posix|right)\/|^(?:localtime|posixrules)$/;
/** A whole database has 598 names since 2025b; fewer means that the folder is a part of one. */
const MIN_NAMES = 590;

interface TzdataFile {
  version: string;
  zones: Record<string, string>;
  links: Record<string, string>;
}

/** @throws Error when the folder is no tz database of a known release, or a zone cannot be read. */
export function extract(folder: string): TzdataFile {
  const version = releaseOf(folder);
  if (version === undefined)
    throw new Error(`${folder}: no release (tzdata.zi or +VERSION) is there`);
  const zones: Record<string, string> = {};
  const links: Record<string, string> = {};
  const byLine = new Map<string, string>();
  for (const name of namesIn(folder)) {
    const line = encodeZone(tableOf(path.join(folder, name)));
    const same = byLine.get(line);
    if (same === undefined) {
      byLine.set(line, name);
      zones[name] = line;
    } else {
      links[name] = same;
    }
  }
  const count = byLine.size + Object.keys(links).length;
  if (count < MIN_NAMES)
    throw new Error(`${folder}: has ${count} names, a whole tz database at least ${MIN_NAMES}`);
  return { version, zones, links };
}

function namesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .filter((name) => !NO_ZONES.test(name) && isTzif(path.join(folder, name)))
    .toSorted();
}

function isTzif(file: string): boolean {
  try {
    return readFileSync(file).toString("latin1", 0, 4) === "TZif";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EISDIR") return false;
    throw error;
  }
}

function tableOf(file: string): ZoneTable {
  try {
    const { initial, changes, footer } = readTzif(readFileSync(file));
    const { standard, yearly } = readPosixRule(footer);
    if (yearly === undefined && (changes.at(-1)?.offset ?? initial) !== standard)
      throw new Error(`its rule ${footer} is not what its last change brings`);
    if (yearly !== undefined) dropWhatTheRuleBrings(changes, yearly);
    return {
      initial,
      instants: changes.map(({ at }) => at),
      offsets: changes.map(({ offset }) => offset),
      rule: yearly,
    };
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** "Fat" files list by year what their rule says anyway. */
function dropWhatTheRuleBrings(changes: TzifZone["changes"], rule: YearlyRule): void {
  for (;;) {
    const [before, last] = [changes.at(-2), changes.at(-1)];
    if (before === undefined || last === undefined) return;
    const year = new Date(before.at * 1000).getUTCFullYear();
    const next = [year, year + 1]
      .flatMap((y) => changesIn(rule, y))
      .find(({ at }) => at > before.at);
    if (next?.at !== last.at || next.offset !== last.offset) return;
    changes.pop();
  }
}

export function releaseOf(folder: string): string | undefined {
  const read = (name: string): string | undefined => {
    try {
      return readFileSync(path.join(folder, name), "utf8");
    } catch {
      return undefined;
    }
  };
  const header = read("tzdata.zi")
    ?.split("\n", 1)[0]
    ?.match(/^# version (\S+)/)?.[1];
  return header ?? read("+VERSION")?.trim();
}

/** One zone per line, so that a release shows what it changed. */
export function textOf({ version, zones, links }: TzdataFile): string {
  const object = (entries: Record<string, string>): string =>
    `{\n${Object.entries(entries)
      .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
      .join(",\n")}\n }`;
  return `{\n "version": ${JSON.stringify(version)},\n "zones": ${object(zones)},\n "links": ${object(links)}\n}\n`;
}

function main(): number {
  const { values } = parseArgs({
    options: { from: { type: "string" }, check: { type: "boolean", default: false } },
  });
  if (values.from !== undefined) {
    writeFileSync(FILE, textOf(extract(values.from)));
    console.log(`wrote ${path.relative(process.cwd(), FILE)}`);
    return 0;
  }
  const file = JSON.parse(readFileSync(FILE, "utf8")) as TzdataFile;
  const zones = Object.entries(file.zones).map(([name, line]) => [
    name,
    encodeZone(decodeZone(line)),
  ]);
  const fault = staleness(
    FILE,
    textOf({ ...file, zones: Object.fromEntries(zones) as TzdataFile["zones"] }),
  );
  if (fault !== undefined) console.error(`${fault}\nrun: node tools/tzdata/generate.ts --from DIR`);
  const here = releaseOf(HOST);
  if (here !== undefined && here > file.version)
    console.log(
      `tz database: the product has ${file.version}, this machine ${here}: make tzdata TZDATA=${HOST}`,
    );
  return fault === undefined ? 0 : 1;
}

if (import.meta.main) {
  try {
    process.exitCode = main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
