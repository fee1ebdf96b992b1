/** The calendar: when a schedule fires. Pure, exactly robfig/cron v3 as Kubernetes uses it (docs/adr/0003-calendar.md). */
export { formatInstant, parseInstant } from "./rfc3339.ts";
export { tzdataVersion } from "./tz-table.ts";
export {
  parseSchedule,
  type ParseScheduleResult,
  type Schedule,
  type ScheduleErrorReason,
  type ScheduleOptions,
} from "./schedule.ts";
