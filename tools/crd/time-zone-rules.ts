/**
 * What can be known of a time zone's name without zone data, as `validateTimeZone` of Kubernetes checks it.
 * Whether the zone exists is for the operator to say (condition ScheduleValid).
 */
import type { ValidationRule } from "./openapi.ts";
import { celString } from "./schedule-rules.ts";

const CHARACTER = "[A-Za-z._0-9+-]";

/** 1 to 14 of these characters, not beginning with a minus, neither `.` nor `..`: written out, for RE2 cannot look ahead. */
const PART = either(
  `[A-Za-z_0-9+]${CHARACTER}{0,13}`,
  `\\.[A-Za-z_0-9+-]${CHARACTER}{0,12}`,
  `\\.\\.${CHARACTER}{1,12}`,
);

export const TIME_ZONE_NAME = `^${PART}(?:/${PART})*$`;

export function timeZoneRules(): ValidationRule[] {
  return [
    { rule: "self.size() > 0", message: "timeZone must be nil or non-empty string" },
    {
      rule: `self.size() == 0 || self.matches(${celString(TIME_ZONE_NAME)})`,
      messageExpression: "'unknown time zone ' + self",
      message: "unknown time zone",
    },
    {
      rule: "!self.matches('^[Ll][Oo][Cc][Aa][Ll]$')",
      message:
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
    },
  ];
}

function either(...alternatives: string[]): string {
  return `(?:${alternatives.join("|")})`;
}
