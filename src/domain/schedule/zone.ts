/**
 * Offsets of a time zone as spans of constant offset, from the table of the tz database that the product carries.
 * Nothing here runs per tick but a comparison with the span found last.
 */
import { SECONDS_PER_DAY, dateOfDay, dayOfDate, daysInMonth, weekdayOf, yearOf } from "./civil.ts";
import {
  tzdbSpelling,
  zoneOfName,
  zoneTable,
  type YearlyChange,
  type YearlyRule,
  type ZoneTable,
} from "./tz-table.ts";

/** A stretch of constant offset; instants and lengths in seconds. */
export interface Span {
  /** First second of the span. */
  readonly start: number;
  /** First second after it. */
  readonly end: number;
  /** Seconds east of UTC. */
  readonly offset: number;
  /** From here on, and before `cleanTo`, each wall-clock reading belongs to one instant only. */
  readonly cleanFrom: number;
  readonly cleanTo: number;
}

export interface Zone {
  readonly name: string;
  /** The span an instant (seconds since the epoch) is in. */
  spanAt(second: number): Span;
}

export type ZoneResult = { ok: true; zone: Zone } | { ok: false; message: string };

interface Change {
  readonly at: number;
  readonly offset: number;
}

/** Years of a rule whose spans are kept per zone, two or three small objects each; in practice a handful is asked for. */
const MAX_YEARS = 512;

/** Names of one zone share it. */
const zones = new Map<string, Zone>();

/**
 * The zone of a name, judged as Kubernetes and Go's time.LoadLocation judge it on a host with the whole tz database:
 * exact spelling; no offsets, no abbreviations, no `Local`.
 */
export function loadZone(name: string): ZoneResult {
  const problem = nameProblem(name);
  if (problem !== undefined) return { ok: false, message: problem };
  const data = zoneOfName(name) ?? name;
  let zone = zones.get(data);
  if (zone === undefined) {
    zone = zoneFrom(data, zoneTable(data));
    zones.set(data, zone);
  }
  return { ok: true, zone };
}

function nameProblem(name: string): string | undefined {
  if (zoneOfName(name) !== undefined) return undefined;
  if (name === "") return "timeZone must not be empty: leave it out for UTC";
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
  if (name.toLowerCase() === "local") {
    return `timeZone must be an explicit name of the tz database such as Europe/Berlin, not ${shown}`;
  }
  const spelling = tzdbSpelling(name);
  return spelling === undefined
    ? `unknown time zone ${shown}: not a name of the tz database such as Europe/Berlin`
    : `unknown time zone ${shown}: names are case-sensitive, did you mean ${spelling}?`;
}

export function zoneFrom(name: string, table: ZoneTable): Zone {
  const { initial, rule } = table;
  const changes = table.instants.map((at, i) => ({ at, offset: table.offsets[i] ?? initial }));
  const lastListed = changes.at(-1)?.at ?? -Infinity;
  const lastOffset = changes.at(-1)?.offset ?? initial;
  const listed = spansOf(
    initial,
    rule === undefined ? changes : withFirstOf(rule, changes, lastOffset),
  );
  // Where a rule goes on, the last listed span ends at its first change.
  const ruleFrom = rule === undefined ? Infinity : (listed.at(-1)?.start ?? -Infinity);
  if (rule !== undefined) listed.pop();
  const byYear = new Map<number, Span[]>();
  let last: Span = { start: 1, end: 0, offset: 0, cleanFrom: 0, cleanTo: 0 };

  function yearOfRule(rule: YearlyRule, year: number): Span[] {
    let spans = byYear.get(year);
    if (spans === undefined) {
      if (byYear.size >= MAX_YEARS) byYear.clear();
      const around = [year - 1, year, year + 1].flatMap((y) => changesIn(rule, y));
      const later = around.filter(({ at }) => at > lastListed);
      const before = around.findLast(({ at }) => at <= lastListed) ?? { offset: lastOffset };
      const begin = dayOfDate(year, 1, 1) * SECONDS_PER_DAY;
      const end = dayOfDate(year + 1, 1, 1) * SECONDS_PER_DAY;
      spans = spansOf(before.offset, later).filter((span) => span.end > begin && span.start < end);
      byYear.set(year, spans);
    }
    return spans;
  }

  return {
    name,
    spanAt(second) {
      if (second >= last.start && second < last.end) return last;
      last =
        rule === undefined || second < ruleFrom
          ? spanIn(listed, second)
          : spanIn(
              yearOfRule(rule, yearOf(dateOfDay(Math.floor(second / SECONDS_PER_DAY)))),
              second,
            );
      return last;
    },
  };
}

/** The listed changes and the first of the rule, with which the last listed span ends. */
function withFirstOf(rule: YearlyRule, changes: readonly Change[], offset: number): Change[] {
  const at = changes.at(-1)?.at ?? 0;
  const year = yearOf(dateOfDay(Math.floor(at / SECONDS_PER_DAY)));
  const first = [year, year + 1]
    .flatMap((y) => changesIn(rule, y))
    .find((change) => change.at > at && change.offset !== offset);
  return first === undefined ? [...changes] : [...changes, first];
}

/** The two changes that a rule brings in a year, in order. */
export function changesIn(rule: YearlyRule, year: number): Change[] {
  return rule
    .map((change) => ({ at: instantOf(change, year), offset: change.offset }))
    .toSorted((a, b) => a.at - b.at);
}

function instantOf(c: YearlyChange, year: number): number {
  const first = dayOfDate(year, c.month, 1);
  let day = 1 + ((c.weekday - weekdayOf(first) + 7) % 7) + 7 * (c.week - 1);
  while (day > daysInMonth(year, c.month)) day -= 7;
  return (first + day - 1) * SECONDS_PER_DAY + c.time - c.clock;
}

/** The spans that changes cut time into; the first begins, and the last ends, at no time. */
function spansOf(initial: number, changes: readonly Change[]): Span[] {
  const spans: Span[] = [];
  let start = -Infinity;
  let offset = initial;
  let shiftBefore = 0;
  for (const change of [...changes, { at: Infinity, offset: NaN }]) {
    if (change.offset === offset) continue;
    const shiftAfter = change.at === Infinity ? 0 : Math.abs(change.offset - offset);
    spans.push({
      start,
      end: change.at,
      offset,
      cleanFrom: start + shiftBefore,
      cleanTo: change.at - shiftAfter,
    });
    start = change.at;
    offset = change.offset;
    shiftBefore = shiftAfter;
  }
  return spans;
}

function spanIn(spans: readonly Span[], second: number): Span {
  let low = 0;
  let high = spans.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (second < (spans[middle] as Span).end) high = middle;
    else low = middle + 1;
  }
  return spans[low] as Span;
}
