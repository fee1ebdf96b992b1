import { MAX_SECOND, MIN_SECOND } from "./civil.ts";
import { cronTicks, type TickSource } from "./cron.ts";
import { everyTicks } from "./every.ts";
import { parseExpression, type Expression } from "./expression.ts";
import { formatInstant } from "./rfc3339.ts";
import { loadZone, type Zone } from "./zone.ts";

/** The event reasons the native CronJob controller gives for the same mistakes. */
export type ScheduleErrorReason = "UnparseableSchedule" | "UnknownTimeZone";

export interface ScheduleOptions {
  /** A name of the tz database in its exact spelling; left out, UTC. */
  timeZone?: string | undefined;
  /** Six fields, seconds first. Default: five. */
  seconds?: boolean | undefined;
}

export type ParseScheduleResult =
  { ok: true; schedule: Schedule } | { ok: false; reason: ScheduleErrorReason; message: string };

/**
 * When to run. Instants are wall-clock milliseconds since the epoch, from year 1 to 9999; ticks are whole seconds.
 * No method throws; an instant out of range (or NaN) has no ticks.
 *
 * The ticks after an instant are the chain next(a), next(next(a)), … as robfig/cron v3 gives it. For a cron expression
 * the chain hardly depends on where it starts (only the walk over a clock change may); for `@every` it does entirely:
 * `a` + k × interval, sub-second part of `a` dropped. So whoever wants the same ticks on every replica and after every
 * restart starts from a recorded instant (the last tick, or the anchor set at creation), never from now.
 */
export interface Schedule {
  readonly expression: string;
  /** As given; "UTC" when none was. */
  readonly timeZone: string;
  /** The interval of `@every` in seconds, at least 1; null for a cron expression. */
  readonly intervalSeconds: number | null;
  /** Two ticks may share a minute, so a Job's name must count seconds. True for each six-field expression. */
  readonly subMinute: boolean;
  /**
   * First tick strictly after an instant. Null when robfig/cron gives up: no match up to the end of the fifth calendar
   * year (in the zone) after the one of `afterMs`. An impossible date (February 31) is null; so is February 29 for some
   * years before 2104.
   */
  next(afterMs: number): number | null;
  /**
   * The same as robfig/cron itself answers, to foresee what a CronJob does. It differs from `next` only right at some
   * clock changes, where it is not after `afterMs`: a CronJob's ticks stand still there for ever, ours go on.
   */
  robfigNext(afterMs: number): number | null;
  /**
   * Last tick in (fromMs, toMs] of the chain from `fromMs`, or null. Exact, and fast over any range: years cost
   * microseconds each. (Exact but for second 59 in offsets with seconds, the
   * last of which ended in 1972.) Nothing is looked for from the year 2200 on.
   */
  lastFire(fromMs: number, toMs: number): number | null;
  /** Number of ticks in (fromMs, toMs] of the same chain; stops at `limit`. */
  countFires(fromMs: number, toMs: number, limit?: number): number;
  /**
   * RFC 3339 time of a tick with the zone's offset, as in the annotation
   * `batch.kubernetes.io/cronjob-scheduled-timestamp`.
   */
  timestamp(tickMs: number): string;
}

/** 2200-01-01: ranges end here, so that a nonsensical `to` does not cost the zone tables of 7,800 years. */
const LAST_RANGE_SECOND = 7_258_118_400;

/** Reads a schedule as Kubernetes does: robfig/cron's ParseStandard, no zone inside the expression, explicit zone names. */
export function parseSchedule(
  expression: string,
  options: ScheduleOptions = {},
): ParseScheduleResult {
  const { timeZone = "UTC", seconds = false } = options;
  // The zone first, as the native controller checks it.
  const zone = loadZone(timeZone);
  if (!zone.ok) return { ok: false, reason: "UnknownTimeZone", message: zone.message };
  const parsed = parseExpression(expression, seconds);
  if (!parsed.ok) return { ok: false, reason: "UnparseableSchedule", message: parsed.message };
  return {
    ok: true,
    schedule: createSchedule(expression, timeZone, seconds, parsed.expression, zone.zone),
  };
}

function createSchedule(
  text: string,
  timeZone: string,
  seconds: boolean,
  expression: Expression,
  zone: Zone,
): Schedule {
  const every = expression.kind === "every";
  const intervalSeconds = every ? expression.intervalSeconds : null;
  const ticks = every ? everyTicks(expression.intervalSeconds) : cronTicks(expression.fields, zone);
  return {
    expression: text,
    timeZone,
    intervalSeconds,
    subMinute: intervalSeconds === null ? seconds && !text.startsWith("@") : intervalSeconds < 60,
    ...onMilliseconds(ticks),
    timestamp(tickMs) {
      const second = Math.floor(tickMs / 1000);
      return formatInstant(tickMs, inRange(second) ? zone.spanAt(second).offset : 0);
    },
  };
}

/** From the public milliseconds and half-open ranges to whole seconds and closed ones. */
function onMilliseconds(
  ticks: TickSource,
): Pick<Schedule, "next" | "robfigNext" | "lastFire" | "countFires"> {
  return {
    next(afterMs) {
      const from = secondAfter(afterMs);
      return inRange(from) ? toMilliseconds(ticks.firstFrom(from)) : null;
    },
    robfigNext(afterMs) {
      const from = secondAfter(afterMs);
      return inRange(from) ? toMilliseconds(ticks.robfigFrom(from)) : null;
    },
    lastFire(fromMs, toMs) {
      const from = secondAfter(fromMs);
      const to = Math.min(LAST_RANGE_SECOND, Math.floor(toMs / 1000));
      if (!inRange(from) || !(from <= to)) return null;
      return toMilliseconds(ticks.lastBetween(from, to));
    },
    countFires(fromMs, toMs, limit = Infinity) {
      const from = secondAfter(fromMs);
      const to = Math.min(LAST_RANGE_SECOND, Math.floor(toMs / 1000));
      if (!inRange(from) || !(from <= to) || !(limit > 0)) return 0;
      return ticks.countBetween(from, to, limit);
    },
  };
}

/** The first whole second strictly after an instant. */
function secondAfter(ms: number): number {
  return Math.floor(ms / 1000) + 1;
}

function inRange(second: number): boolean {
  return second > MIN_SECOND && second <= MAX_SECOND;
}

function toMilliseconds(second: number | null): number | null {
  return second === null || second > MAX_SECOND ? null : second * 1000;
}
