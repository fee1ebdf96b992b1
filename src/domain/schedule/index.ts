/**
 * The calendar: when a schedule fires. Pure; unless it is told otherwise exactly robfig/cron v3 as Kubernetes uses it
 * (docs/adr/0003-calendar.md).
 */
export type { DstPolicy, ScheduleSpec } from "../../api/types.ts";
export { describeClockChange, type ClockChange } from "./clock-changes.ts";
export { DST_POLICIES, type ReadOptions, type ScheduleErrorReason } from "./member.ts";
export { formatInstant, parseInstant } from "./rfc3339.ts";
export {
  parseSchedule,
  type ParseScheduleResult,
  type ResolvedSchedule,
  type Schedule,
} from "./schedule.ts";
export { parseSpec, specOfText, specText } from "./spec.ts";
export { tzdataVersion } from "./tz-table.ts";
