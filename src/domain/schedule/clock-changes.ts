/**
 * What changes of clocks do to a schedule: the ordinary surprise of cron, told a year ahead. Each matching reading of
 * the wall clock should run once; what does not is counted. A schedule of all hours is one of intervals: that an hour
 * comes twice or not at all is as it should be then.
 */
import type { TickSource } from "./cron.ts";
import type { CronFields } from "./fields.ts";
import type { Member } from "./member.ts";
import { countMatches, matchesAllHours, nextMatch } from "./wall.ts";
import type { Span } from "./zone.ts";

export interface ClockChange {
  /** When clocks change, ms. */
  readonly at: number;
  readonly timeZone: string;
  /** Seconds that clocks are put forward. */
  readonly shiftSeconds: number;
  /** Times of the schedule that do not run, that run twice, and runs at a time that is none of the schedule. */
  readonly missing: number;
  readonly twice: number;
  readonly moved: number;
  /** The first reading of the wall clock that is concerned, such as "02:30". */
  readonly reading: string;
}

/** robfig/cron can pass over the whole day of a change, or run an hour off on the day after; seconds. */
const REACH = 26 * 3600;
const NARROW_REACH = 3600;
/** With more times than this in reach (a field for seconds), only the hours next to the change are looked at. */
const MANY = 4_000;

/** `from` and `to` in seconds. */
export function clockChangesOf(
  members: readonly Member[],
  from: number,
  to: number,
): ClockChange[] {
  const found: ClockChange[] = [];
  for (const { fields, zone, timeZone, ticks } of members) {
    if (fields === null) continue;
    let span = zone.spanAt(from);
    while (span.end <= to) {
      const after = zone.spanAt(span.end);
      const effect = effectOf(fields, ticks, span, after);
      if (effect !== undefined) {
        const shiftSeconds = after.offset - span.offset;
        found.push({ at: span.end * 1000, timeZone, shiftSeconds, ...effect });
      }
      span = after;
    }
  }
  return found.toSorted((a, b) => a.at - b.at);
}

type Effect = Pick<ClockChange, "missing" | "twice" | "moved" | "reading">;

function effectOf(f: CronFields, ticks: TickSource, before: Span, after: Span): Effect | undefined {
  const change = before.end;
  let reach = REACH;
  if (countMatches(f, change + before.offset - reach, change + after.offset + reach) > MANY) {
    reach = NARROW_REACH + Math.abs(after.offset - before.offset);
  }
  const begin = Math.max(before.start, change - reach);
  const end = Math.min(after.end, change + reach);
  const ran = ticksIn(ticks, begin, end);
  const intervals = matchesAllHours(f);
  const effect = { missing: 0, twice: 0, moved: 0 };
  let reading: number | undefined;
  for (const match of matchesIn(f, begin + before.offset, end + after.offset)) {
    const shown = [match - before.offset, match - after.offset].filter(
      (at, i) => at >= begin && at < end && (i === 0 ? at < change : at >= change),
    );
    // Of intervals, each time the clock shows a match is one to run; of times of day, the first.
    const runs = shown.filter((at) => ran.delete(at)).length;
    const wanted = intervals ? shown.length : 1;
    if (runs === wanted) continue;
    if (runs < wanted) effect.missing += wanted - runs;
    else effect.twice += 1;
    reading ??= match;
  }
  effect.moved = ran.size;
  // A run at another time stands for one that is missing at its own.
  effect.missing = Math.max(0, effect.missing - ran.size);
  const [stray] = ran;
  if (stray !== undefined) reading ??= stray + (stray < change ? before : after).offset;
  return reading === undefined ? undefined : { ...effect, reading: timeOfDay(reading) };
}

function ticksIn(ticks: TickSource, begin: number, end: number): Set<number> {
  const found = new Set<number>();
  for (let at = ticks.firstFrom(begin); at !== null && at < end; at = ticks.firstFrom(at + 1)) {
    found.add(at);
  }
  return found;
}

function* matchesIn(f: CronFields, begin: number, end: number): Generator<number> {
  let match = nextMatch(f, begin, 1);
  while (match !== null && match < end) {
    yield match;
    match = nextMatch(f, match + 1, 1);
  }
}

function timeOfDay(local: number): string {
  const iso = new Date(local * 1000).toISOString();
  return local % 60 === 0 ? iso.slice(11, 16) : iso.slice(11, 19);
}

/** One sentence for people. */
export function describeClockChange(change: ClockChange): string {
  const { missing, twice, moved, reading } = change;
  const hours = Math.abs(change.shiftSeconds) / 3600;
  const way = change.shiftSeconds > 0 ? "forward" : "back";
  const times = (count: number): string => (count === 1 ? "1 time" : `${count} times`);
  const effects = [
    missing > 0 ? `${times(missing)} of the schedule ${missing === 1 ? "does" : "do"} not run` : "",
    twice > 0 ? `${times(twice)} of the schedule ${twice === 1 ? "runs" : "run"} twice` : "",
    moved > 0 ? `${moved === 1 ? "1 run is" : `${moved} runs are`} at another time` : "",
  ].filter((effect) => effect !== "");
  const at = new Date(change.at).toISOString().replace(".000Z", "Z");
  return `${at}: clocks in ${change.timeZone} go ${way} by ${Number(hours.toFixed(2))} h, ${effects.join(", ")} (from ${reading})`;
}
