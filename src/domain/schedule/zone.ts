/**
 * Offsets of a time zone as a table of spans of constant offset, read from Intl once per stretch of some four years
 * and kept. Nothing here runs per tick but a comparison with the span found last.
 */
import { MAX_SECOND, MIN_SECOND } from "./civil.ts";
import { tzdbSpelling } from "./zone-names.ts";

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
  /** The span an instant (seconds since the epoch) is in. It may end at a seam without a change of offset. */
  spanAt(second: number): Span;
}

export type ZoneResult = { ok: true; zone: Zone } | { ok: false; message: string };

interface Transition {
  readonly at: number;
  readonly offset: number;
}

type OffsetAt = (second: number) => number;

const DAY = 86_400;

/**
 * Two changes that undo each other are at least 3.98 days apart in the whole tz database (Africa/Freetown, September
 * 1939; since 1970 6.95 days): a sample every three days meets each of them.
 */
const SAMPLE = 3 * DAY;
const SEGMENT = 512 * SAMPLE;

/** Before 1840 every zone keeps its local mean time (the first change is Asia/Manila's, 1844). */
const FIRST_SEGMENT = Math.floor(-4_102_444_800 / SEGMENT);
const LAST_SEGMENT = Math.floor(MAX_SECOND / SEGMENT);

/** Segments kept per zone: all from 1840 to 2200 (of a few hundred bytes each; in practice two or three are read). */
const MAX_SEGMENTS = 96;

/** A zone of the tz database that ICU leaves out. Its offset is zero ("-00": not set up). */
const FACTORY = "Factory";

const zonesByName = new Map<string, Zone>();
const zonesByData = new Map<string, Zone>();

/**
 * The zone of a name, judged as Kubernetes and Go's time.LoadLocation judge it on a host with the whole tz database:
 * exact spelling; no offsets, no abbreviations, no `Local`.
 */
export function loadZone(name: string): ZoneResult {
  const known = zonesByName.get(name);
  if (known !== undefined) return { ok: true, zone: known };
  const problem = nameProblem(name);
  if (problem !== undefined) return { ok: false, message: problem };

  const data = name === FACTORY ? "UTC" : canonicalName(name);
  if (data === undefined) {
    return {
      ok: false,
      message: `time zone ${name} is not in the tz database of this runtime (ICU); a newer Node.js has it`,
    };
  }
  let zone = zonesByData.get(data);
  if (zone === undefined) {
    zone = data === "UTC" ? fixedZone(data) : zoneFrom(data, () => intlOffsets(data));
    zonesByData.set(data, zone);
  }
  zonesByName.set(name, zone);
  return { ok: true, zone };
}

function nameProblem(name: string): string | undefined {
  if (name === "") return "timeZone must not be empty: leave it out for UTC";
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
  if (name.toLowerCase() === "local") {
    return `timeZone must be an explicit name of the tz database such as Europe/Berlin, not ${shown}`;
  }
  const spelling = tzdbSpelling(name);
  if (spelling === name || (spelling === undefined && isNewerThanList(name))) return undefined;
  return spelling === undefined
    ? `unknown time zone ${shown}: not a name of the tz database such as Europe/Berlin`
    : `unknown time zone ${shown}: names are case-sensitive, did you mean ${spelling}?`;
}

/** Zones that a later tz database adds are primary names, which the runtime lists in their exact spelling. */
function isNewerThanList(name: string): boolean {
  return Intl.supportedValuesOf("timeZone").includes(name);
}

function canonicalName(name: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

function fixedZone(name: string): Zone {
  const span: Span = {
    start: -Infinity,
    end: Infinity,
    offset: 0,
    cleanFrom: -Infinity,
    cleanTo: Infinity,
  };
  return { name, spanAt: () => span };
}

/**
 * `openOffsets` is called once per segment: a formatter costs 26 KB and 76 µs, so it is worth making again and not
 * worth keeping.
 */
export function zoneFrom(name: string, openOffsets: () => OffsetAt): Zone {
  const segments = new Map<number, Span[]>();
  let last: Span = { start: 1, end: 0, offset: 0, cleanFrom: 0, cleanTo: 0 };

  function segmentAt(index: number): Span[] {
    let segment = segments.get(index);
    if (segment === undefined) {
      if (segments.size >= MAX_SEGMENTS) segments.clear();
      segment = readSegment(index, openOffsets());
      segments.set(index, segment);
    }
    return segment;
  }

  return {
    name,
    spanAt(second) {
      if (second >= last.start && second < last.end) return last;
      const index = Math.max(FIRST_SEGMENT, Math.min(LAST_SEGMENT, Math.floor(second / SEGMENT)));
      for (const span of segmentAt(index)) {
        if (second < span.end) {
          last = span;
          break;
        }
      }
      return last;
    },
  };
}

function readSegment(index: number, offsetAt: OffsetAt): Span[] {
  const first = index === FIRST_SEGMENT;
  const start = first ? -Infinity : index * SEGMENT;
  const end = index === LAST_SEGMENT ? Infinity : (index + 1) * SEGMENT;
  // One sample beyond each side: a change just outside makes readings just inside ambiguous too.
  const from = index * SEGMENT - SAMPLE;
  const initial = offsetAt(from);
  const transitions = findTransitions(from, (index + 1) * SEGMENT + SAMPLE, offsetAt);

  const spans: Span[] = [];
  let spanStart = -Infinity;
  let offset = initial;
  let shiftBefore = 0;
  for (const next of [...transitions, { at: Infinity, offset: NaN }]) {
    const shiftAfter = next.at === Infinity ? 0 : Math.abs(next.offset - offset);
    if (next.at > start && spanStart < end) {
      spans.push({
        start: Math.max(start, spanStart),
        end: Math.min(end, next.at),
        offset,
        cleanFrom: Math.max(start, spanStart + shiftBefore),
        cleanTo: Math.min(end, next.at - shiftAfter),
      });
    }
    spanStart = next.at;
    offset = next.offset;
    shiftBefore = shiftAfter;
  }
  return spans;
}

function findTransitions(from: number, to: number, offsetAt: OffsetAt): Transition[] {
  const found: Transition[] = [];
  let offset = offsetAt(from);
  for (let at = from; at < to; at += SAMPLE) {
    const after = offsetAt(at + SAMPLE);
    if (after === offset) continue;
    found.push({ at: bisect(at, at + SAMPLE, offset, offsetAt), offset: after });
    offset = after;
  }
  return found;
}

/** First second whose offset is not `before`; it is in (low, high]. */
function bisect(low: number, high: number, before: number, offsetAt: OffsetAt): number {
  let same = low;
  let changed = high;
  while (changed - same > 1) {
    const middle = Math.floor((same + changed) / 2);
    if (offsetAt(middle) === before) same = middle;
    else changed = middle;
  }
  return changed;
}

const LONG_OFFSET = /GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/;

function intlOffsets(timeZone: string): OffsetAt {
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  return (second) => {
    const clamped = Math.max(MIN_SECOND, Math.min(MAX_SECOND, second));
    const text = format.format(clamped * 1000);
    const [found, sign, hours = "0", minutes = "0", seconds = "0"] = LONG_OFFSET.exec(text) ?? [];
    if (found === undefined)
      throw new RangeError(`no offset of ${timeZone} in ${JSON.stringify(text)}`);
    const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    return sign === "-" ? -size : size;
  };
}
