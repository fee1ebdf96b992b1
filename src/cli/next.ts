/** `lockedcron next`: when a schedule fires; unless a dstPolicy is given exactly as robfig/cron and thus CronJob have it. */
import {
  DST_POLICIES,
  formatInstant,
  parseInstant,
  parseSchedule,
  tzdataVersion,
  type DstPolicy,
  type ParseScheduleResult,
  type Schedule,
} from "../domain/schedule/index.ts";
import { misuse, type Command, type ExitCode, type Io } from "./command.ts";
import { quote, readFlags } from "./flags.ts";
import { readLines, type Line } from "./lines.ts";

const DEFAULT_COUNT = 5;
const MAX_COUNT = 10_000;
const MAX_LINE = 1024 * 1024;

const USAGE = `Usage: lockedcron next --schedule EXPRESSION [options]
       lockedcron next --jsonl < QUESTIONS

Prints when a schedule fires, one RFC 3339 instant in UTC per line.

  --schedule EXPRESSION  five fields, a macro such as @daily, or @every 10s
  --time-zone ZONE       name of the tz database, such as Europe/Berlin (default: UTC)
  --after INSTANT        RFC 3339; the first time printed is later than this (default: now)
  --count N              how many, 1 to ${MAX_COUNT} (default: ${DEFAULT_COUNT})
  --seconds              six fields, seconds first
  --dst-policy POLICY    ${DST_POLICIES.join(", ")} (default: ${DST_POLICIES[0]})
  --name NAMESPACE/NAME  of the LockedCronJob: what H in a field is hashed from
  --hash-seed TEXT       the same, as spec.hashSeed
  --jsonl                one JSON object {schedule, timeZone, after, count, seconds, dstPolicy, hashSeed}
                         per line in, {"next": [...]} or {"error": "..."} per line out, bad lines included
  -h, --help             this text

Time zones are those of the tz database ${tzdataVersion}. Fewer lines than asked for mean that the schedule does not fire in the five years that follow.
Exit code: 0, or 2 for a wrong call.
`;

interface Question {
  schedule: string;
  timeZone: string | undefined;
  /** Milliseconds. */
  after: number;
  count: number;
  seconds: boolean;
  dstPolicy: DstPolicy;
  seed: string | undefined;
}

/** A question with everything that is wrong with it. */
interface Checked {
  question: Question;
  parsed: ParseScheduleResult | undefined;
  problems: string[];
}

export const next: Command = {
  async run(argv, io) {
    const { values, positionals, problems } = readFlags(argv, {
      schedule: { type: "string" },
      "time-zone": { type: "string" },
      after: { type: "string" },
      count: { type: "string" },
      seconds: { type: "boolean" },
      "dst-policy": { type: "string" },
      name: { type: "string" },
      "hash-seed": { type: "string" },
      jsonl: { type: "boolean" },
    });
    if (values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    for (const word of positionals) {
      problems.push(`${quote(word)}: belongs to no flag; put an expression with spaces in quotes`);
    }
    const { jsonl, help: _, ...given } = values;
    if (jsonl === true) {
      for (const name of Object.keys(given)) {
        problems.push(`--${name}: does not go with --jsonl, whose lines say it themselves`);
      }
      return problems.length > 0 ? misuse(io, "next", problems) : answerLines(io);
    }
    const { "time-zone": timeZone, "dst-policy": dstPolicy, "hash-seed": seed, ...rest } = given;
    if (typeof given.name === "string" && !/^[^/]+\/[^/]+$/.test(given.name)) {
      problems.push(`--name: ${quote(given.name)} is not NAMESPACE/NAME, such as team/report`);
    }
    const nameOf = (field: string): string =>
      `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    const hashSeed = seed ?? given.name;
    const checked = check({ ...rest, timeZone, dstPolicy, hashSeed }, io.now(), nameOf);
    problems.push(...checked.problems);
    if (problems.length > 0 || !checked.parsed?.ok) return misuse(io, "next", problems);
    return answerOne(io, checked.question, checked.parsed.schedule);
  },
};

async function answerOne(io: Io, question: Question, schedule: Schedule): Promise<ExitCode> {
  const times = nextTimes(question, schedule);
  await io.out(times.map((time) => `${formatInstant(time)}\n`).join(""));
  if (times.length === 0) {
    const after = formatInstant(question.after);
    io.error(`lockedcron next: does not fire in the five years after ${after}\n`);
  }
  const repeated = times.find((time, index) => time <= (times[index - 1] ?? question.after));
  if (repeated !== undefined) {
    io.error(
      `lockedcron next: at this change of clocks robfig/cron goes back to ${formatInstant(repeated)}, and a CronJob ` +
        `stands still; a LockedCronJob goes on: ${formatInstant(schedule.next(repeated) ?? NaN)}\n`,
    );
  }
  return 0;
}

/** A bad line gets its own answer and stops nothing. */
async function answerLines(io: Io): Promise<ExitCode> {
  for await (const lines of readLines(io.stdin, MAX_LINE)) {
    const answers = lines.map((line) => `${JSON.stringify(answerLine(line, io.now()))}\n`);
    if (!(await io.out(answers.join("")))) return 0;
  }
  return 0;
}

function answerLine(line: Line, now: number): { next: string[] } | { error: string } {
  if (line === null) return { error: `line is longer than ${MAX_LINE} characters` };
  let fields: unknown;
  try {
    fields = JSON.parse(line);
  } catch {
    return { error: `not JSON: ${quote(line)}` };
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    return { error: `not a JSON object: ${quote(line)}` };
  }
  const { question, parsed, problems } = check(fields as Record<string, unknown>, now, (f) => f);
  if (problems.length > 0 || !parsed?.ok) return { error: problems.join("; ") };
  return { next: nextTimes(question, parsed.schedule).map((time) => formatInstant(time)) };
}

/** As CronJob would see them, so not always one after the other: see `robfigNext`. */
function nextTimes({ after, count }: Question, schedule: Schedule): number[] {
  const times: number[] = [];
  let at: number | null = after;
  while (times.length < count) {
    at = schedule.robfigNext(at);
    if (at === null) break;
    times.push(at);
  }
  return times;
}

/** Fills in defaults; null counts as left out, and a field that is not known as not there. */
function check(
  given: Record<string, unknown>,
  now: number,
  nameOf: (field: string) => string,
): Checked {
  const problems: string[] = [];
  const take = <T>(
    field: string,
    otherwise: T,
    read: (value: unknown) => T | undefined,
    want: string,
  ): T => {
    const value = given[field] ?? undefined;
    if (value === undefined) return otherwise;
    const taken = read(value);
    if (taken !== undefined) return taken;
    problems.push(`${nameOf(field)}: ${quote(value)} is not ${want}`);
    return otherwise;
  };
  const text = (value: unknown): string | undefined =>
    typeof value === "string" ? value : undefined;
  const instant = (value: unknown): number | undefined =>
    typeof value === "string" ? (parseInstant(value) ?? undefined) : undefined;
  const policy = (value: unknown): DstPolicy | undefined =>
    DST_POLICIES.find((each) => each === value);
  const truth = (value: unknown): boolean | undefined =>
    typeof value === "boolean" ? value : undefined;

  const missing = (given.schedule ?? undefined) === undefined;
  if (missing) problems.push(`${nameOf("schedule")}: is missing`);
  const question: Question = {
    schedule: take("schedule", "", text, "a string"),
    timeZone: take<string | undefined>("timeZone", undefined, text, "a string"),
    after: take("after", now, instant, "an RFC 3339 instant such as 2026-11-30T12:00:00Z"),
    count: take("count", DEFAULT_COUNT, readCount, `a whole number from 1 to ${MAX_COUNT}`),
    seconds: take("seconds", false, truth, "true or false"),
    dstPolicy: take("dstPolicy", "Kubernetes", policy, `one of ${DST_POLICIES.join(", ")}`),
    seed: take<string | undefined>("hashSeed", undefined, text, "a string"),
  };
  if (missing || typeof given.schedule !== "string") {
    return { question, parsed: undefined, problems };
  }
  const { schedule, timeZone, ...how } = question;
  const parsed = parseSchedule(schedule, { timeZone, ...how });
  // An unknown zone is found first and must not hide a mistake in the expression.
  const alone = parsed.ok || timeZone === undefined ? parsed : parseSchedule(schedule, how);
  if (!alone.ok) problems.push(`${nameOf("schedule")}: ${alone.message}`);
  if (!parsed.ok && parsed.reason === "UnknownTimeZone") {
    problems.push(`${nameOf("timeZone")}: ${parsed.message}`);
  }
  return { question, parsed, problems };
}

/** A number in JSON, its digits on the command line. */
function readCount(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  const fits =
    typeof count === "number" && Number.isInteger(count) && count >= 1 && count <= MAX_COUNT;
  return fits ? count : undefined;
}
