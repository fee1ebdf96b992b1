/**
 * Everything that LockedCronJob says of itself: one table for spec, one for status, one for the columns of
 * `kubectl get`. A new field is one entry here (and its counterpart in src/api); only fields that work may stand here.
 */
import { object, type Field, type Fields } from "./object.ts";
import type { OpenApiDocument, ValidationRule } from "./openapi.ts";
import { structuralSchema } from "./openapi.ts";
import { lockField } from "./lock-fields.ts";
import { jobTemplateSchema, REPLACEMENTS } from "./job-template.ts";
import { scheduleFields } from "./schedule-fields.ts";
import { policyFields } from "./policy-fields.ts";
import { OBJECT_REFERENCE } from "./source.ts";

/** `lcj-1234567890`: a Job's name may have 63 characters, and eleven of them are the tick. */
export const NAME_RULE: ValidationRule = {
  rule: "self.metadata.name.size() <= 52",
  message: "must be no more than 52 characters",
  fieldPath: ".metadata.name",
};

export function specFields(document: OpenApiDocument): Fields {
  return {
    ...scheduleFields(),
    startingDeadlineSeconds: {
      description:
        "How many seconds late a run may still start. Ticks missed by more are recorded as missed. No limit if absent.",
      type: "integer",
      format: "int64",
      minimum: 0,
    },
    ...policyFields(),
    suspend: {
      description: "If true, no new runs start. Runs that are active go on.",
      type: "boolean",
      default: false,
    },
    jobTemplate: {
      ...jobTemplateSchema(document),
      mandatory: true,
      description: "The Job that is created for each tick, as in batch/v1 CronJob.",
    },
    successfulJobsHistoryLimit: {
      description: "How many Jobs that succeeded are kept.",
      type: "integer",
      format: "int32",
      minimum: 0,
      default: 3,
    },
    failedJobsHistoryLimit: {
      description: "How many Jobs that failed are kept.",
      type: "integer",
      format: "int32",
      minimum: 0,
      default: 1,
    },
    lock: lockField(),
  };
}

const time = (description: string): Field => ({
  description,
  type: "string",
  format: "date-time",
});
const text = (description: string): Field => ({ description, type: "string" });
const count = (description: string, format: "int32" | "int64"): Field => ({
  description,
  type: "integer",
  format,
  minimum: 0,
});

export function statusFields(document: OpenApiDocument): Fields {
  return {
    observedGeneration: count("The generation of the spec that this status is about.", "int64"),
    conditions: {
      description: "Ready, and what it depends on.",
      type: "array",
      items: object("One aspect of the state.", conditionFields),
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["type"],
    },
    active: {
      description: "The Jobs that are running.",
      type: "array",
      items: structuralSchema(document, OBJECT_REFERENCE, REPLACEMENTS),
      "x-kubernetes-list-type": "atomic",
    },
    activeCount: count("How many Jobs are running.", "int32"),
    lastScheduleTime: time("The latest tick that was launched."),
    lastSuccessfulTime: time("When a run last finished successfully."),
    lastFailureTime: time("When a run last failed."),
    consecutiveFailures: count("How many runs have failed since one last succeeded.", "int32"),
    nextScheduleTime: time("When the next tick is due, with jitter."),
    nextScheduleTimes: {
      description: "When the next ticks are due, with jitter; soonest first.",
      type: "array",
      maxItems: 5,
      items: { type: "string", format: "date-time" },
      "x-kubernetes-list-type": "atomic",
    },
    resolvedSchedules: {
      description:
        "The schedules with numbers for each H, and their zones; where the spec does not say it itself.",
      type: "array",
      items: object("One schedule.", {
        schedule: { ...text("In cron format, without H."), mandatory: true },
        timeZone: { ...text("Its zone."), mandatory: true },
        name: text("Its name."),
      }),
      "x-kubernetes-list-type": "atomic",
    },
    tzdata: text("Release of the tz database that the next ticks were found with."),
    token: count("The newest fencing token: it grows with each run.", "int64"),
    lastTrigger: text("The newest lockedcron.io/trigger that was carried out."),
    backfill: object("How far the newest lockedcron.io/backfill is.", {
      id: text("Which."),
      cursor: time("The last tick of it that was launched."),
    }),
    lock: object("The lock of the newest run that is active.", {
      key: text("Its key in Redis."),
      holder: text("The run that holds it."),
      mutexes: {
        description: "The mutexes that the run holds or waits for, as namespace/name.",
        type: "array",
        items: { type: "string" },
        "x-kubernetes-list-type": "atomic",
      },
      validUntil: time("How long it stays locked if nobody renews it any more."),
      renewedBy: text("The replica that renews it."),
    }),
    decisions: {
      description: "The latest decisions, newest last.",
      type: "array",
      maxItems: 10,
      items: object("What was decided about a tick, and why.", {
        time: { ...time("When it was decided."), mandatory: true },
        tick: time("The tick it was about."),
        decision: { ...text("What was decided."), mandatory: true },
        reason: { ...text("Why, in one word."), mandatory: true },
        message: text("Why, in a sentence."),
        replica: text("The replica that decided."),
      }),
      "x-kubernetes-list-type": "atomic",
    },
  };
}

/** Bounds and patterns of metav1.Condition, which tools such as `kubectl wait` and kstatus build on. */
const conditionFields: Fields = {
  type: {
    ...text("Which aspect."),
    mandatory: true,
    maxLength: 316,
    pattern:
      "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
  },
  status: {
    ...text("Whether it holds."),
    mandatory: true,
    enum: ["True", "False", "Unknown"],
  },
  observedGeneration: count("The generation of the spec that it is about.", "int64"),
  lastTransitionTime: { ...time("When status last changed."), mandatory: true },
  reason: {
    ...text("Why, in one word."),
    mandatory: true,
    minLength: 1,
    maxLength: 1024,
    pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
  },
  message: { ...text("Why, in a sentence."), mandatory: true, maxLength: 32768 },
};

export interface PrinterColumn {
  name: string;
  type: "string" | "integer" | "boolean" | "date";
  jsonPath: string;
  description: string;
  priority?: 1;
}

/** CronJob's columns in CronJob's order, then ours. */
export const COLUMNS: PrinterColumn[] = [
  column("Schedule", "string", ".spec.schedule", "When it runs"),
  column("Timezone", "string", ".spec.timeZone", "Time zone of the schedule"),
  column("Suspend", "boolean", ".spec.suspend", "Whether new runs are held back"),
  column("Active", "integer", ".status.activeCount", "Jobs that are running"),
  column("Last Schedule", "date", ".status.lastScheduleTime", "Age of the latest tick launched"),
  column("Age", "date", ".metadata.creationTimestamp", "Age of this object"),
  // A string: kubectl prints a date that lies ahead as <invalid>.
  column("Next", "string", ".status.nextScheduleTime", "The next tick"),
  column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', "Condition Ready"),
  { ...column("Holder", "string", ".status.lock.holder", "Run that holds the lock"), priority: 1 },
  { ...column("Token", "integer", ".status.token", "The newest fencing token"), priority: 1 },
];

function column(
  name: string,
  type: PrinterColumn["type"],
  jsonPath: string,
  description: string,
): PrinterColumn {
  return { name, type, jsonPath, description };
}
