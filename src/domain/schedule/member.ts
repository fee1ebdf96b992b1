/** One cron expression in one zone, read: what a schedule is made of. */
import type { DstPolicy } from "../../api/types.ts";
import { cronTicks, type TickSource } from "./cron.ts";
import { everyTicks } from "./every.ts";
import { parseExpression, type SecondsField } from "./expression.ts";
import type { CronFields } from "./fields.ts";
import { resolveHashed } from "./hashed.ts";
import { readingTicks } from "./readings.ts";
import { loadZone, type Zone } from "./zone.ts";

/**
 * What happens when clocks change.
 *   Kubernetes  exactly what robfig/cron does, and so CronJob
 *   WallClock, RunOnce  see readings.ts
 */
export const DST_POLICIES: readonly DstPolicy[] = ["Kubernetes", "WallClock", "RunOnce"];

/** The event reasons the native CronJob controller gives for the same mistakes. */
export type ScheduleErrorReason = "UnparseableSchedule" | "UnknownTimeZone";

export interface ReadOptions {
  /** A name of the tz database in its exact spelling; left out, UTC. */
  timeZone?: string | undefined;
  /** Six fields, seconds first; "auto" takes five or six. Default: five. */
  seconds?: SecondsField | undefined;
  /** Default: Kubernetes. */
  dstPolicy?: DstPolicy | undefined;
  /** What `H` is the hash of. Left out, `H` is refused. */
  seed?: string | undefined;
  name?: string | undefined;
}

export interface Member {
  /** What the spec calls it. */
  readonly name?: string | undefined;
  /** As given. */
  readonly expression: string;
  /** With numbers for each `H`. */
  readonly resolved: string;
  readonly timeZone: string;
  readonly zone: Zone;
  readonly dstPolicy: DstPolicy;
  /** null for `@every`. */
  readonly fields: CronFields | null;
  /** The interval of `@every` in seconds; null for a cron expression. */
  readonly intervalSeconds: number | null;
  readonly subMinute: boolean;
  readonly ticks: TickSource;
}

export type MemberResult =
  { ok: true; member: Member } | { ok: false; reason: ScheduleErrorReason; message: string };

export function readMember(expression: string, options: ReadOptions): MemberResult {
  const { timeZone = "UTC", seconds = false, dstPolicy = "Kubernetes", seed, name } = options;
  // The zone first, as the native controller checks it.
  const loaded = loadZone(timeZone);
  if (!loaded.ok) return { ok: false, reason: "UnknownTimeZone", message: loaded.message };
  const resolved = resolveHashed(expression, seed, seconds);
  if (!resolved.ok) return unparseable(resolved.message);
  const parsed = parseExpression(resolved.expression, seconds);
  if (!parsed.ok) return unparseable(parsed.message);
  const { zone } = loaded;
  const common = { name, expression, resolved: resolved.expression, timeZone, zone, dstPolicy };
  if (parsed.expression.kind === "every") {
    const { intervalSeconds } = parsed.expression;
    const ticks = everyTicks(intervalSeconds);
    const subMinute = intervalSeconds < 60;
    return { ok: true, member: { ...common, fields: null, intervalSeconds, subMinute, ticks } };
  }
  const { fields, seconds: subMinute } = parsed.expression;
  const ticks =
    dstPolicy === "Kubernetes" ? cronTicks(fields, zone) : readingTicks(fields, zone, dstPolicy);
  return { ok: true, member: { ...common, fields, intervalSeconds: null, subMinute, ticks } };
}

function unparseable(message: string): MemberResult {
  return { ok: false, reason: "UnparseableSchedule", message };
}
