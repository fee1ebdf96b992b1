/**
 * Cron expressions exactly as robfig/cron v3.0.1 reads them (its `ParseStandard`, and the parser with a seconds field),
 * with its quirks: `?` is `*`, `N/step` runs to the field's maximum, whatever follows `*-` is ignored, a field of
 * commas alone is empty (the schedule never fires), numbers may carry a plus sign and leading zeros, Unicode spaces
 * separate fields. Macros and `@every` are in lower case only.
 */
import { delaySeconds, parseGoDuration } from "./duration.ts";
import { sixtyBits, type CronFields } from "./fields.ts";

export type Expression =
  /** `seconds`: it has a field for them. */
  | { kind: "cron"; fields: CronFields; seconds: boolean }
  | { kind: "every"; intervalSeconds: number };

export type ExpressionResult =
  { ok: true; expression: Expression } | { ok: false; message: string };

/** Six fields, seconds first; five; or whichever of the two it has. */
export type SecondsField = boolean | "auto";

export interface Bounds {
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

interface FieldBits {
  readonly values: ReadonlySet<number>;
  readonly star: boolean;
}

const SECOND: Bounds = { label: "second", min: 0, max: 59, names: [] };
const MINUTE: Bounds = { label: "minute", min: 0, max: 59, names: [] };
const HOUR: Bounds = { label: "hour", min: 0, max: 23, names: [] };
const DAY_OF_MONTH: Bounds = { label: "day of month", min: 1, max: 31, names: [] };
const MONTH: Bounds = {
  label: "month",
  min: 1,
  max: 12,
  names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAY_OF_WEEK: Bounds = {
  label: "day of week",
  min: 0,
  max: 6,
  names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

const STANDARD = [MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK];
const WITH_SECONDS = [SECOND, ...STANDARD];

const MACROS: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
  ["@monthly", "0 0 1 * *"],
  ["@weekly", "0 0 * * 0"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@hourly", "0 * * * *"],
]);
const EVERY = "@every ";

/** Longer than any sensible list of every field; keeps parsing linear and error messages short. */
const MAX_LENGTH = 4096;

/** Go's unicode.IsSpace, which differs from JavaScript's \s by U+0085 and U+FEFF. */
const SPACES = /[\t-\r \u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+/u;

const INTEGER = /^[+-]?\d+$/;
const MAX_INT64 = 9_223_372_036_854_775_807n;

export class Refused extends Error {}

export function parseExpression(text: string, withSeconds: SecondsField): ExpressionResult {
  try {
    return { ok: true, expression: read(text, withSeconds) };
  } catch (error) {
    if (error instanceof Refused) return { ok: false, message: error.message };
    throw error;
  }
}

function read(text: string, withSeconds: SecondsField): Expression {
  if (text === "") throw new Refused("schedule is empty");
  if (text.length > MAX_LENGTH) {
    throw new Refused(`schedule is longer than ${MAX_LENGTH} characters`);
  }
  // Kubernetes refuses the letters anywhere, not only in front.
  if (text.includes("TZ")) {
    throw new Refused("cannot use TZ or CRON_TZ in schedule, use the timeZone field instead");
  }
  if (text.startsWith("@")) return readDescriptor(text);
  const parts = splitFields(text);
  const layout = layoutOf(parts, withSeconds);
  if (parts.length !== layout.length) {
    const names = layout.map((bounds) => bounds.label).join(", ");
    const also = withSeconds === "auto" ? ", or six with the second first" : "";
    throw new Refused(
      `expected exactly ${layout.length} fields (${names})${also}, found ${parts.length}: ${quote(text)}`,
    );
  }
  const seconds = layout === WITH_SECONDS;
  return { kind: "cron", fields: readFields(parts, seconds), seconds };
}

export function splitFields(text: string): string[] {
  return text.split(SPACES).filter((part) => part !== "");
}

/** What the fields of an expression are. */
export function layoutOf(parts: readonly string[], withSeconds: SecondsField): readonly Bounds[] {
  const six = withSeconds === "auto" ? parts.length === WITH_SECONDS.length : withSeconds;
  return six ? WITH_SECONDS : STANDARD;
}

function readDescriptor(text: string): Expression {
  const macro = MACROS.get(text);
  if (macro !== undefined) {
    return { kind: "cron", fields: readFields(macro.split(" "), false), seconds: false };
  }
  if (!text.startsWith(EVERY)) {
    throw new Refused(
      `unrecognized descriptor ${quote(text)} (known: ${[...MACROS.keys()].join(", ")}, @every <duration>)`,
    );
  }
  const duration = parseGoDuration(text.slice(EVERY.length));
  if (!duration.ok) throw new Refused(`duration of ${quote(text)} ${duration.message}`);
  return { kind: "every", intervalSeconds: delaySeconds(duration.nanos) };
}

function readFields(parts: readonly string[], withSeconds: boolean): CronFields {
  const [second, minute, hour, dom, month, dow] = (withSeconds ? parts : ["0", ...parts]) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const seconds = readField(second, SECOND);
  const minutes = readField(minute, MINUTE);
  const hours = readField(hour, HOUR);
  const days = readField(dom, DAY_OF_MONTH);
  const months = readField(month, MONTH);
  const weekdays = readField(dow, DAY_OF_WEEK);
  return {
    seconds: sixtyBits(seconds.values),
    minutes: sixtyBits(minutes.values),
    hours: mask(hours.values, 0),
    daysOfMonth: mask(days.values, 1),
    months: mask(months.values, 0),
    weekdays: mask(weekdays.values, 0),
    eitherDay: !days.star && !weekdays.star,
  };
}

function mask(values: Iterable<number>, base: number): number {
  let bits = 0;
  for (const value of values) bits |= 1 << (value - base);
  return bits;
}

/** One field: ranges separated by commas; empty ranges do not count. */
function readField(field: string, bounds: Bounds): FieldBits {
  const values = new Set<number>();
  let star = false;
  for (const range of field.split(",")) {
    if (range !== "" && readRange(range, bounds, values)) star = true;
  }
  return { values, star };
}

/** Adds the values of `*`, `a`, `a-b` with or without `/step`; true if it counts as a star. */
function readRange(range: string, bounds: Bounds, values: Set<number>): boolean {
  const [span = "", stepText, ...moreSlashes] = range.split("/");
  const [low = "", high, ...moreHyphens] = span.split("-");
  const star = low === "*" || low === "?";
  let start = bounds.min;
  let end = bounds.max;
  let step = 1;
  if (!star) {
    start = readNumberOrName(low, range, bounds);
    if (moreHyphens.length > 0) throw refusal("too many hyphens", range, bounds);
    end = high === undefined ? start : readNumberOrName(high, range, bounds);
  }
  if (moreSlashes.length > 0) throw refusal("too many slashes", range, bounds);
  if (stepText !== undefined) {
    step = readNumber(stepText, range, bounds);
    if (high === undefined) end = bounds.max;
  }
  if (start < bounds.min)
    throw refusal(`${start} is below the minimum ${bounds.min}`, range, bounds);
  if (end > bounds.max) throw refusal(`${end} is above the maximum ${bounds.max}`, range, bounds);
  if (start > end)
    throw refusal(`the range begins at ${start} beyond its end ${end}`, range, bounds);
  if (step === 0) throw refusal("the step must be a positive number", range, bounds);
  for (let value = start; value <= end; value += step) values.add(value);
  return star && step === 1;
}

export function readNumberOrName(text: string, range: string, bounds: Bounds): number {
  // U+0130 is the one letter whose simple lower case, which Go uses, is plain ASCII and JavaScript's is not.
  const index = bounds.names.indexOf(text.replaceAll("\u0130", "i").toLowerCase());
  return index >= 0 ? index + bounds.min : readNumber(text, range, bounds);
}

export function readNumber(text: string, range: string, bounds: Bounds): number {
  if (!INTEGER.test(text)) throw refusal(`${quote(text)} is not a number`, range, bounds);
  const value = BigInt(text);
  if (value > MAX_INT64) throw refusal(`${quote(text)} is too large`, range, bounds);
  if (value < 0n) throw refusal(`negative number ${quote(text)}`, range, bounds);
  return Number(value);
}

export function refusal(what: string, range: string, bounds: Bounds): Refused {
  const where = `${bounds.label} (${bounds.min}-${bounds.max})`;
  return new Refused(`${what} in ${where}: ${quote(range)}`);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
