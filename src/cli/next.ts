/** `lockedcron next`: when a schedule fires, exactly as the operator (and native CronJob) reads it. */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { formatInstant, parseInstant, parseSchedule } from "../domain/schedule/index.ts";
import { misuse, type Command, type ExitCode, type Io } from "./command.ts";
import { quote, readFlags } from "./flags.ts";

const DEFAULT_COUNT = 5;
const MAX_COUNT = 10_000;

const USAGE = `Usage: lockedcron next --schedule EXPRESSION [options]
       lockedcron next --jsonl < QUESTIONS

Prints when a schedule fires, one RFC 3339 instant in UTC per line.

  --schedule EXPRESSION  five fields, a macro such as @daily, or @every 10s
  --time-zone ZONE       name of the tz database, such as Europe/Berlin (default: UTC)
  --after INSTANT        RFC 3339; the first time printed is later than this (default: now)
  --count N              how many, 1 to ${MAX_COUNT} (default: ${DEFAULT_COUNT})
  --seconds              six fields, seconds first
  --jsonl                one JSON object {schedule, timeZone, after, count, seconds} per line in,
                         {"next": [...]} or {"error": "..."} per line out
  -h, --help             this text

Fewer lines than asked for mean that the schedule does not fire in the coming five years.
Exit code: 0, 1 for a schedule that is not valid, 2 for a wrong call.
`;

interface Question {
  schedule: string;
  timeZone: string | undefined;
  /** Milliseconds. */
  after: number;
  count: number;
  seconds: boolean;
}

type Answer = { next: string[] } | { error: string };

export const next: Command = {
  async run(argv, io) {
    const { values, positionals, problems } = readFlags(argv, {
      schedule: { type: "string" },
      "time-zone": { type: "string" },
      after: { type: "string" },
      count: { type: "string" },
      seconds: { type: "boolean" },
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
    if (given.schedule === undefined) problems.push("--schedule: is missing");
    const { count, ...rest } = given;
    const checked = check(
      {
        ...rest,
        timeZone: given["time-zone"],
        count: count === undefined ? undefined : Number(count),
      },
      io.now(),
      (name) => `--${name === "timeZone" ? "time-zone" : name}`,
    );
    problems.push(...checked.problems.filter((p) => !p.startsWith("--schedule: is missing")));
    return problems.length > 0 ? misuse(io, "next", problems) : answerOne(io, checked.question);
  },
};

async function answerOne(io: Io, question: Question): Promise<ExitCode> {
  const answer = answerTo(question);
  if ("error" in answer) {
    io.error(`lockedcron next: ${answer.error}\n`);
    return 1;
  }
  await io.out(answer.next.map((time) => `${time}\n`).join(""));
  return 0;
}

/** A bad line gets its own answer and stops nothing. */
async function answerLines(io: Io): Promise<ExitCode> {
  for await (const line of createInterface({
    input: Readable.from(io.stdin),
    crlfDelay: Infinity,
  })) {
    if (line.trim() === "") continue;
    if (!(await io.out(`${JSON.stringify(answerLine(line, io.now()))}\n`))) return 0;
  }
  return 0;
}

function answerLine(line: string, now: number): Answer {
  let fields: unknown;
  try {
    fields = JSON.parse(line);
  } catch {
    return { error: `not JSON: ${quote(line)}` };
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    return { error: `not a JSON object: ${quote(line)}` };
  }
  const { question, problems } = check(fields as Record<string, unknown>, now, (name) => name);
  return problems.length > 0 ? { error: problems.join("; ") } : answerTo(question);
}

function answerTo({ schedule, timeZone, after, count, seconds }: Question): Answer {
  const parsed = parseSchedule(schedule, { timeZone, seconds });
  if (!parsed.ok) return { error: parsed.message };
  const times: string[] = [];
  for (let at: number | null = after; times.length < count;) {
    at = parsed.schedule.next(at);
    if (at === null) break;
    times.push(formatInstant(at));
  }
  return { next: times };
}

/** Fills in defaults; null counts as left out. */
function check(
  given: Record<string, unknown>,
  now: number,
  nameOf: (field: string) => string,
): { question: Question; problems: string[] } {
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
  if (given.schedule === undefined) problems.push(`${nameOf("schedule")}: is missing`);
  const question: Question = {
    schedule: take("schedule", "", text, "a string"),
    timeZone: take<string | undefined>("timeZone", undefined, text, "a string"),
    after: take(
      "after",
      now,
      (value) => (typeof value === "string" ? (parseInstant(value) ?? undefined) : undefined),
      "an RFC 3339 instant such as 2026-11-30T12:00:00Z",
    ),
    count: take(
      "count",
      DEFAULT_COUNT,
      (value) =>
        Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_COUNT
          ? Number(value)
          : undefined,
      `a whole number from 1 to ${MAX_COUNT}`,
    ),
    seconds: take(
      "seconds",
      false,
      (value) => (typeof value === "boolean" ? value : undefined),
      "true or false",
    ),
  };
  return { question, problems };
}
