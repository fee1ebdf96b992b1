import { MAX_SECOND, MIN_SECOND } from "./civil.ts";
import { clockChangesOf, type ClockChange } from "./clock-changes.ts";
import { unionOf, withinWindow } from "./combine.ts";
import type { TickSource } from "./cron.ts";
import { delayWithin } from "./jitter.ts";
import { readMember, type Member, type ReadOptions, type ScheduleErrorReason } from "./member.ts";
import { formatInstant } from "./rfc3339.ts";

export type ParseScheduleResult =
  { ok: true; schedule: Schedule } | { ok: false; reason: ScheduleErrorReason; message: string };

/** A schedule as it is carried out. */
export interface ResolvedSchedule {
  schedule: string;
  timeZone: string;
  name?: string;
}

/** What holds for all expressions of a schedule together. */
export interface ScheduleLimits {
  /** Ticks before and after are none; wall clock, ms. */
  notBefore?: number | undefined;
  notAfter?: number | undefined;
  /** A tick is due at most this much later; with `seed` and the tick, the same on every replica. */
  jitterSeconds?: number | undefined;
  seed?: string | undefined;
}

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
  /** What it is made of, with numbers for each `H`. */
  readonly resolved: readonly ResolvedSchedule[];
  /** The interval of `@every` in seconds, at least 1; null for cron expressions. */
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
  /** When a tick is due: the tick itself, or up to `jitterSeconds` after it and before the next one. */
  dueAt(tickMs: number): number;
  /** Last tick in (fromMs, nowMs] of the same chain that is due by `nowMs`, or null. */
  lastDue(fromMs: number, nowMs: number): number | null;
  /** What the changes of clocks in the year after an instant do to its ticks: those only that do something. */
  clockChanges(nowMs: number): readonly ClockChange[];
  /**
   * RFC 3339 time of a tick with the zone's offset, as in the annotation
   * `batch.kubernetes.io/cronjob-scheduled-timestamp`.
   */
  timestamp(tickMs: number): string;
  /** What the spec calls those of its schedules that a tick belongs to, in their order. */
  namesAt(tickMs: number): readonly string[];
}

/** 2200-01-01: ranges end here, so that a nonsensical `to` does not cost the zone tables of 7,800 years. */
const LAST_RANGE_SECOND = 7_258_118_400;
const YEAR = 366 * 86_400;
/** What the changes of clocks do is looked up again after so long, or when one has passed; seconds. */
const CLOCK_CHANGES_KEPT = 30 * 86_400;

/**
 * Reads one expression as Kubernetes does: robfig/cron's ParseStandard, no zone inside the expression, explicit zone
 * names.
 */
export function parseSchedule(expression: string, options: ReadOptions = {}): ParseScheduleResult {
  const read = readMember(expression, options);
  return read.ok ? { ok: true, schedule: scheduleOf([read.member], { seed: options.seed }) } : read;
}

/** Puts expressions together; several of them must not have an `@every` among them (spec.ts refuses it). */
export function scheduleOf(members: readonly Member[], limits: ScheduleLimits): Schedule {
  const [only] = members;
  const intervalSeconds = (members.length === 1 ? only?.intervalSeconds : undefined) ?? null;
  const sources = members.map((member) => member.ticks);
  const all = sources.length === 1 && only !== undefined ? only.ticks : unionOf(sources);
  const begin = Math.ceil((limits.notBefore ?? -Infinity) / 1000);
  const end = Math.floor((limits.notAfter ?? Infinity) / 1000);
  const always = begin === -Infinity && end === Infinity;
  const ticks = always ? all : withinWindow(all, begin, end, intervalSeconds !== null);
  const onMs = onMilliseconds(ticks);
  const { jitterSeconds = 0, seed = "" } = limits;

  function dueAt(tickMs: number): number {
    if (jitterSeconds === 0) return tickMs;
    const next = onMs.next(tickMs) ?? Infinity;
    return tickMs + 1000 * delayWithin(jitterSeconds, (next - tickMs) / 1000, seed, tickMs / 1000);
  }

  const named = members.some(({ name }) => name !== undefined);
  const membersAt = (second: number): readonly Member[] =>
    members.filter(({ ticks }) => ticks.firstFrom(second) === second);

  return {
    resolved: members.map(({ resolved, timeZone, name }) => ({
      schedule: resolved,
      timeZone,
      ...(name === undefined ? {} : { name }),
    })),
    intervalSeconds,
    subMinute: members.some((member) => member.subMinute),
    ...onMs,
    dueAt,
    lastDue(fromMs, nowMs) {
      const last = onMs.lastFire(fromMs, nowMs);
      if (last === null || dueAt(last) <= nowMs) return last;
      // The one before it is due: no tick is delayed past the next one.
      return onMs.lastFire(fromMs, last - 1);
    },
    clockChanges: rememberedChanges(members, begin, end),
    timestamp(tickMs) {
      const second = Math.floor(tickMs / 1000);
      if (!inRange(second)) return formatInstant(tickMs);
      const own = membersAt(second)[0] ?? only;
      return formatInstant(tickMs, own?.zone.spanAt(second).offset);
    },
    namesAt(tickMs) {
      const second = Math.floor(tickMs / 1000);
      if (!named || !inRange(second)) return [];
      return membersAt(second).flatMap(({ name }) => name ?? []);
    },
  };
}

/** The status asks each time that something happens; the answer changes a few times a year. */
function rememberedChanges(
  members: readonly Member[],
  begin: number,
  end: number,
): (nowMs: number) => readonly ClockChange[] {
  let from = 0;
  let until = -Infinity;
  let known: readonly ClockChange[] = [];
  return (nowMs) => {
    const now = Math.floor(nowMs / 1000);
    if (!inRange(now)) return [];
    if (now < from || now >= until) {
      known = clockChangesOf(members, Math.max(now, begin), Math.min(now + YEAR, end));
      from = now;
      until = Math.min(
        now + CLOCK_CHANGES_KEPT,
        ...members.map(({ zone }) => zone.spanAt(now).end),
      );
    }
    return known;
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
