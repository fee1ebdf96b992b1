/**
 * The syntax of `spec.schedule` as CEL rules, each one literal regular expression generated from the bounds of the
 * fields. Together they accept what `ParseStandard` of github.com/robfig/cron v3.0.1 accepts (the API server's own
 * parser for CronJob), oddities included: a plus sign and leading zeros before a number, empty list items
 * (`1,,2`), `?` for `*`, and anything at all between `*-` and the next `/`, `,` or blank. Beside that, `H` for a
 * hashed number, and a sixth field in front, for seconds.
 *
 * So that one expression per field does for both, a schedule of five fields is judged with SECONDS_LEFT_OUT in front.
 *
 * One expression per field, not one for all, so that the message can name the field. What no regular expression
 * can see (a sum of durations that overflows) is left to the operator, which reports it in ScheduleValid.
 */
import { either, numberBetween, numberUpTo } from "./numbers.ts";
import type { ValidationRule } from "./openapi.ts";

interface Field {
  name: string;
  min: number;
  max: number;
  names?: string[];
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: Field[] = [
  { name: "second", min: 0, max: 59 },
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12, names: MONTHS },
  { name: "day of week", min: 0, max: 6, names: DAYS },
];

/** Stands for the field of seconds where there is none: nobody else may write these letters. */
const SECONDS_LEFT_OUT = "TZ";

const MACROS = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];

/** What Go's strings.Fields splits on: Unicode White_Space. Neither RE2's nor JavaScript's `\s` is that set. */
const BLANK = "\\t-\\r\u0085\\p{Z}";
const BLANKS = `[${BLANK}]+`;
const NO_BLANK = `[^${BLANK}]`;
const WORD = `${NO_BLANK}+`;
/** Or more, which the rule for their number refuses. */
const SIX_WORDS = `^[${BLANK}]*(?:${WORD}${BLANKS}){5}${NO_BLANK}`;
const ANYTHING = "[\\s\\S]*";

/** Go's strconv.Atoi takes a plus sign and leading zeros. A minus sign would be a range, or is refused. */
const NUMBER_LEAD = "\\+?0*";
const MAX_INT64 = "9223372036854775807";
/** Of so many digits that some are too large is judged by a rule of its own, not in each field. */
const STEP = `/${NUMBER_LEAD}[1-9][0-9]{0,18}`;
const LONG_STEP = `/${NUMBER_LEAD}[1-9][0-9]{18}`;
const NO_STEP_TOO_LARGE = `^(?:[^/]|/${NUMBER_LEAD}${numberUpTo(MAX_INT64)}(?:[^0-9]|$))*$`;

/** How many integer digits, leading zeros aside, a Go time.Duration has room for, by unit. */
const DURATION_DIGITS = { h: 7, m: 9, s: 10, ms: 13, us: 16, "\u00b5s": 16, "\u03bcs": 16, ns: 19 };

/** `TZ=…` has a rule of its own with the API server's text: no other rule should add to it. */
const TZ_PREFIX = "(?:CRON_)?TZ=";

/** The rules of a schedule. It needs a maxLength, or their estimated cost is beyond the API server's limit. */
export function scheduleRules(): ValidationRule[] {
  const six = `self.matches(${celString(SIX_WORDS)})`;
  const matches = (pattern: string): string =>
    `(${six} ? self : '${SECONDS_LEFT_OUT} ' + self).matches(${celString(pattern)})`;
  return [
    {
      rule: "!self.contains('TZ')",
      message: "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
    },
    {
      rule: `self.matches(${celString(shapePattern())})`,
      message:
        "expected exactly 5 fields (minute, hour, day of month, month, day of week), 6 with the second first, one of " +
        `${MACROS.map((macro) => `@${macro}`).join(", ")}, or @every and a duration such as 1h30m`,
    },
    ...FIELDS.map((field, i) => ({ rule: matches(fieldPattern(i)), message: fieldMessage(field) })),
    ...FIELDS.map((field, i) => ({
      // Most schedules have no range: the cheap test first.
      rule: `!self.contains('-') || !${matches(descendingPattern(i))}`,
      message: `${field.name}: beginning of range beyond end of range`,
    })),
    stepRule(),
  ];
}

/** The same for one of several schedules, in fewer words: which field it is, the operator says in ScheduleValid. */
export function scheduleItemRules(): ValidationRule[] {
  // Never nothing at all: between two blanks there would be one more field.
  const fields = FIELDS.map((field) => `(?:,*${itemOf(field)}(?:,+${itemOf(field)})*,*|,+)`);
  const [seconds = "", ...others] = fields;
  const words = `(?:${seconds}${BLANKS})?${others.join(BLANKS)}`;
  const macros = `@(?:${MACROS.join("|")}|every${ANYTHING})`;
  const shape = `^(?:${macros}|${TZ_PREFIX}${ANYTHING}|[${BLANK}]*${words}[${BLANK}]*)$`;
  return [
    ...scheduleRules().slice(0, 1),
    {
      rule: `self.matches(${celString(shape)})`,
      message:
        "expected 5 fields, or 6 with the second first, each *, H, or numbers and ranges within its bounds separated by " +
        "commas, with an optional /step",
    },
    {
      rule: "!self.matches('^@every')",
      message: "@every counts from the last run, which has no meaning beside other schedules",
    },
    stepRule(),
  ];
}

function stepRule(): ValidationRule {
  return {
    rule: `!self.matches(${celString(LONG_STEP)}) || self.matches(${celString(NO_STEP_TOO_LARGE)})`,
    message: "a step is too large",
  };
}

function fieldMessage({ name, min, max, names }: Field): string {
  const range = `${min}-${max}${names ? ` (or ${names[0]}-${names.at(-1)})` : ""}`;
  return `${name}: expected *, H, or numbers and ranges within ${range} separated by commas, each with an optional /step`;
}

/** A macro, `@every` with a Go duration, or five words. */
export function shapePattern(): string {
  const amounts = Object.entries(DURATION_DIGITS).map(
    ([unit, digits]) => `(?:0*[0-9]{1,${digits}}(?:\\.[0-9]*)?|\\.[0-9]+)${unit}`,
  );
  const duration = `[+-]?(?:0|(?:${amounts.join("|")})+)`;
  // A leading @ makes it a macro, unless a blank precedes it.
  const firstWord = `(?:[^@${BLANK}]${NO_BLANK}*|${BLANKS}${WORD})`;
  const words = `${firstWord}(?:${BLANKS}${WORD}){4,5}[${BLANK}]*`;
  return `^(?:${TZ_PREFIX}${ANYTHING}|@(?:${MACROS.join("|")}|every ${duration})|${words})$`;
}

/** The field is well-formed, its numbers within bounds. True if there is no such field: `shapePattern` says so. */
export function fieldPattern(index: number): string {
  const field = FIELDS[index]!;
  const item = itemOf(field);
  // One mention of the item only: each ends with a comma or with the field, and then the rest does not matter.
  const rest = `[${BLANK}]${ANYTHING}`;
  const list = `(?:,|${item}(?:,|${rest}|$))+(?:${rest})?$`;
  const fewerFields = `[${BLANK}]*(?:${WORD}(?:${BLANKS}|$)){0,${index}}$`;
  const leftOut = index === 0 ? `${SECONDS_LEFT_OUT} |` : "";
  return `^(?:${leftOut}${SECONDS_LEFT_OUT} @|(?:${SECONDS_LEFT_OUT} )?${TZ_PREFIX}|${fewerFields}|${before(index)}${list})`;
}

/** One of the things between commas. */
function itemOf(field: Field): string {
  const value = valueBetween(field, field.min, field.max);
  const hashed = `H(?:\\(${value}-${value}\\))?`;
  return `(?:[*?](?:-[^,/${BLANK}]*)?|${hashed}|${value}(?:-${value})?)(?:${STEP})?`;
}

/** Some range of the field ends before it begins. Says nothing about a field that `fieldPattern` refuses. */
export function descendingPattern(index: number): string {
  const field = FIELDS[index]!;
  const pairs = [];
  for (let low = field.min + 1; low <= field.max; low++)
    pairs.push(`${valueBetween(field, low, low)}-${valueBetween(field, field.min, low - 1)}`);
  return `^${before(index)}(?:${NO_BLANK}*,)?${either(pairs)}(?:[,/${BLANK}]|$)`;
}

function before(index: number): string {
  return `[${BLANK}]*${index === 0 ? "" : `(?:${WORD}${BLANKS}){${index}}`}`;
}

/** A number of low..high, or one of the field's names for these, in any case. */
function valueBetween(field: Field, low: number, high: number): string {
  const digits = `${NUMBER_LEAD}${numberBetween(low, high)}`;
  const names = (field.names ?? []).slice(low - field.min, high - field.min + 1).map(anyCase);
  return either([digits, ...names]);
}

function anyCase(name: string): string {
  // Go's ToLower makes an i of the Turkish capital I with dot, too.
  return name.replace(/./g, (c) => `[${c.toUpperCase()}${c}${c === "i" ? "\u0130" : ""}]`);
}

/** A CEL string literal in plain ASCII. */
export function celString(text: string): string {
  const escaped = text
    .replace(/[\\']/g, "\\$&")
    .replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `'${escaped}'`;
}
