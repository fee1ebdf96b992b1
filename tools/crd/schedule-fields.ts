/** The fields that say when a LockedCronJob runs. docs/schedules.md explains them. */
import { object, type Field, type Fields } from "./object.ts";
import type { ValidationRule } from "./openapi.ts";
import { scheduleItemRules, scheduleRules } from "./schedule-rules.ts";
import { timeZoneRules } from "./time-zone-rules.ts";

export const SCHEDULE_RULES: ValidationRule[] = [
  {
    rule: "has(self.schedule) || has(self.schedules)",
    message: "set it, or schedules for several",
    reason: "FieldValueRequired",
    fieldPath: ".schedule",
  },
  {
    rule: "!has(self.schedule) || !has(self.schedules)",
    message: "cannot be set together with schedule: put all of them here",
    reason: "FieldValueForbidden",
    fieldPath: ".schedules",
  },
  {
    rule: "!has(self.notBefore) || !has(self.notAfter) || self.notBefore <= self.notAfter",
    message: "must not be before notBefore",
    fieldPath: ".notAfter",
  },
];

const timeZone = (description: string): Field => ({
  description,
  type: "string",
  maxLength: 64,
  "x-kubernetes-validations": timeZoneRules(),
});

export function scheduleFields(): Fields {
  return {
    schedule: {
      description:
        "When to run, in cron format: five fields (minute, hour, day of month, month, day of week), six with the " +
        "second first, a macro such as @daily, or @every <duration>. H in a field is a number hashed from the name.",
      type: "string",
      maxLength: 512, // bounds the estimated cost of the rules
      "x-kubernetes-validations": scheduleRules(),
    },
    schedules: {
      description: "Several schedules instead of one. Where they meet there is one run.",
      type: "array",
      minItems: 1,
      maxItems: 16,
      items: object("One of several schedules.", {
        schedule: {
          description: "When to run, in cron format.",
          mandatory: true,
          type: "string",
          maxLength: 256,
          "x-kubernetes-validations": scheduleItemRules(),
        },
        timeZone: timeZone("The zone of this one. That of the spec if absent."),
        name: {
          description:
            "Said in decisions, in the annotation lockedcron.io/schedule-names and the variable LOCKEDCRON_SCHEDULE_NAMES.",
          type: "string",
          maxLength: 63,
          pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        },
      }),
      "x-kubernetes-list-type": "atomic",
      "x-kubernetes-validations": [
        {
          rule: "self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))",
          message: "names must be unique",
        },
      ],
    },
    timeZone: timeZone(
      "Name of the time zone (IANA, such as Europe/Berlin) that the schedule is read in. UTC if absent.",
    ),
    dstPolicy: {
      description:
        "What happens when clocks change. Kubernetes (if absent): exactly what CronJob does. WallClock: it runs when the " +
        "clock shows the time, so a time that is skipped does not run, and one that comes twice runs twice. RunOnce: " +
        "each time of day runs once, one that is skipped right after the change.",
      type: "string",
      enum: ["Kubernetes", "WallClock", "RunOnce"],
    },
    hashSeed: {
      description: "What H and jitter are hashed from. namespace/name if absent.",
      type: "string",
      minLength: 1,
      maxLength: 253,
    },
    jitterSeconds: {
      description:
        "Each tick starts up to so many seconds late, always before the next one; by how many is hashed from name and tick.",
      type: "integer",
      format: "int32",
      minimum: 0,
      maximum: 86_400,
    },
    notBefore: {
      description: "There are no ticks before.",
      type: "string",
      format: "date-time",
    },
    notAfter: {
      description: "There are no ticks after.",
      type: "string",
      format: "date-time",
    },
  };
}
