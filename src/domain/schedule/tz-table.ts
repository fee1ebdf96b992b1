/**
 * The time zones of the product: tzdata.json, made from the IANA tz database by `make tzdata` (tools/tzdata). One line
 * per zone, read when the zone is first asked for. The data is public domain.
 *
 * A line is `offsets|letters|instants|rule`:
 *   offsets   seconds east of UTC, in decimal, separated by blanks; the first one holds before the first change
 *   letters   one per change: which offset it brings, as a digit of base 36
 *   instants  one per change, base 36: the first in seconds since the epoch, each later one in seconds after the one before
 *   rule      what goes on after the last change; empty when nothing changes any more (see `ruleText`)
 */
import data from "./tzdata.json" with { type: "json" };

/** One of the two changes that each year brings, in the terms of POSIX. */
export interface YearlyChange {
  readonly month: number;
  /** 1 to 4, or 5 for the last one of the month. */
  readonly week: number;
  /** 0 = Sunday. */
  readonly weekday: number;
  /** Seconds after midnight, may be below 0 or beyond a day, on a clock `clock` seconds east of UTC. */
  readonly time: number;
  readonly clock: number;
  /** Seconds east of UTC from then on. */
  readonly offset: number;
}

export type YearlyRule = readonly [YearlyChange, YearlyChange];

export interface ZoneTable {
  readonly initial: number;
  /** Seconds since the epoch. After the last one the rule holds, not before: so the last may change no offset. */
  readonly instants: readonly number[];
  /** Offset from each of the instants on. */
  readonly offsets: readonly number[];
  readonly rule: YearlyRule | undefined;
}

/** Release of the tz database, such as "2026f". */
export const tzdataVersion: string = data.version;

const zones: Readonly<Record<string, string>> = data.zones;
const links: Readonly<Record<string, string>> = data.links;

/** The zone that has the data of this name; undefined when the tz database has no such name. */
export function zoneOfName(name: string): string | undefined {
  if (Object.hasOwn(zones, name)) return name;
  return Object.hasOwn(links, name) ? links[name] : undefined;
}

/** Every name of the tz database, zones and links. */
export function tzdbNames(): string[] {
  return [...Object.keys(zones), ...Object.keys(links)].toSorted();
}

let byLowerCase: Map<string, string> | undefined;

/** The tz database's own spelling of a name given in any case, or undefined. */
export function tzdbSpelling(name: string): string | undefined {
  byLowerCase ??= new Map(tzdbNames().map((each) => [each.toLowerCase(), each]));
  return byLowerCase.get(name.toLowerCase());
}

/** `zone`: as `zoneOfName` gives it. */
export function zoneTable(zone: string): ZoneTable {
  return decodeZone(zones[zone] ?? "0|||");
}

export function decodeZone(line: string): ZoneTable {
  const [offsetText = "", letters = "", instantText = "", rule = ""] = line.split("|");
  const known = offsetText.split(" ").map(Number);
  const instants: number[] = [];
  let at = 0;
  for (const step of instantText === "" ? [] : instantText.split(" ")) {
    at += Number.parseInt(step, 36);
    instants.push(at);
  }
  return {
    initial: known[0] ?? 0,
    instants,
    offsets: Array.from(letters, (letter) => known[Number.parseInt(letter, 36)] ?? 0),
    rule: rule === "" ? undefined : decodeRule(rule),
  };
}

export function encodeZone({ initial, instants, offsets, rule }: ZoneTable): string {
  const known = [...new Set([initial, ...offsets])];
  const letters = offsets.map((offset) => known.indexOf(offset).toString(36)).join("");
  const steps = instants.map((at, i) => (at - (instants[i - 1] ?? 0)).toString(36));
  return [known.join(" "), letters, steps.join(" "), rule === undefined ? "" : ruleText(rule)].join(
    "|",
  );
}

/** Two changes, each `month.week.weekday.time.clock.offset` in decimal. */
function ruleText(rule: YearlyRule): string {
  return rule
    .map((c) => [c.month, c.week, c.weekday, c.time, c.clock, c.offset].join("."))
    .join(" ");
}

function decodeRule(text: string): YearlyRule {
  return text.split(" ").map((change) => {
    const [month, week, weekday, time, clock, offset] = change.split(".").map(Number);
    return { month, week, weekday, time, clock, offset };
  }) as unknown as YearlyRule;
}
