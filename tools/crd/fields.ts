/**
 * Everything that LockedCronJob says of itself: one table for spec, one for status, one for the columns of
 * `kubectl get`. A new field is one entry here (and its counterpart in src/api); only fields that work may stand here.
 */
import type { OpenApiDocument, StructuralSchema, ValidationRule } from "./openapi.ts";
import { structuralSchema } from "./openapi.ts";
import { jobTemplateSchema, REPLACEMENTS } from "./job-template.ts";
import { scheduleRules } from "./schedule-rules.ts";
import { OBJECT_REFERENCE } from "./source.ts";
import { timeZoneRules } from "./time-zone-rules.ts";

/** A field of an object: its schema, and whether it must be there. */
export type Field = StructuralSchema & { mandatory?: true };
export type Fields = Record<string, Field>;

/** `lcj-1234567890`: a Job's name may have 63 characters, and eleven of them are the tick. */
export const NAME_RULE: ValidationRule = {
  rule: "self.metadata.name.size() <= 52",
  message: "must be no more than 52 characters",
  fieldPath: ".metadata.name",
};

/** Combinations of fields that say two things at once. */
export const SPEC_RULES: ValidationRule[] = [
  {
    rule: "!has(self.catchUp) || !has(self.catchUp.policy) || self.catchUp.policy != 'All' || self.concurrencyPolicy != 'Replace'",
    message: "cannot be All with concurrencyPolicy Replace: each run would end the one before",
    fieldPath: ".catchUp.policy",
  },
  {
    rule: "!has(self.catchUp) || !has(self.catchUp.policy) || self.catchUp.policy == 'All' || self.concurrencyPolicy != 'Queue'",
    message: "must be All or absent with concurrencyPolicy Queue, which runs every tick",
    fieldPath: ".catchUp.policy",
  },
  {
    rule: "!has(self.queueLimit) || self.concurrencyPolicy == 'Queue'",
    message: "is for concurrencyPolicy Queue only",
    fieldPath: ".queueLimit",
  },
];

export function specFields(document: OpenApiDocument): Fields {
  return {
    schedule: {
      mandatory: true,
      description:
        "When to run, in cron format: five fields (minute, hour, day of month, month, day of week), " +
        "a macro such as @daily, or @every <duration>.",
      type: "string",
      maxLength: 512, // bounds the estimated cost of the rules
      "x-kubernetes-validations": scheduleRules(),
    },
    timeZone: {
      description:
        "Name of the time zone (IANA, such as Europe/Berlin) that the schedule is read in. UTC if absent.",
      type: "string",
      maxLength: 64,
      "x-kubernetes-validations": timeZoneRules(),
    },
    startingDeadlineSeconds: {
      description:
        "How many seconds late a run may still start. Ticks missed by more are recorded as missed. No limit if absent.",
      type: "integer",
      format: "int64",
      minimum: 0,
    },
    concurrencyPolicy: {
      description:
        "What happens to a tick while an earlier run is still active. Forbid (the default, unlike CronJob's Allow): " +
        "it waits, and only the latest such tick runs. Allow: runs may overlap. Replace: the earlier run is ended, and " +
        "the tick runs when its pods are gone. Skip: the tick does not run. Queue: it waits, and every such tick runs, in order.",
      type: "string",
      enum: ["Allow", "Forbid", "Queue", "Replace", "Skip"],
      default: "Forbid",
    },
    queueLimit: {
      description:
        "With concurrencyPolicy Queue, how many ticks wait at most (100 if absent). Beyond it the oldest are recorded as missed.",
      type: "integer",
      format: "int32",
      minimum: 1,
      maximum: 1000,
    },
    catchUp: object("What becomes of ticks that could not start when they were due.", {
      policy: {
        description:
          "Latest (if absent): only the latest of them runs. All: each runs, in order. None: none that is more than a " +
          "minute late. What does not run is recorded as missed. With concurrencyPolicy Queue it is always All.",
        type: "string",
        enum: ["All", "Latest", "None"],
      },
      limit: {
        description: "With All, how many run at most, the latest ones (100 if absent).",
        type: "integer",
        format: "int32",
        minimum: 1,
        maximum: 1000,
      },
    }),
    onResume: {
      description:
        "What becomes of the ticks during a suspension. CatchUp (if absent): they count as missed, see catchUp. FromNow: they do not run.",
      type: "string",
      enum: ["CatchUp", "FromNow"],
    },
    onScheduleChange: {
      description:
        "From when an edited schedule or timeZone counts. FromNow (if absent): from the edit. CatchUp, as CronJob does: " +
        "from the last tick, so that ticks which only the new schedule has had since then run too.",
      type: "string",
      enum: ["CatchUp", "FromNow"],
    },
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
    lock: object(
      "How a run is locked among the replicas of the operator.",
      {
        leaseSeconds: {
          description:
            "Lease of the lock that a run holds, in seconds. It is renewed every third of it while the run's pods live.",
          type: "integer",
          format: "int32",
          minimum: 5,
          maximum: 3600,
          default: 30,
        },
        // No default in the schema: it would be stored in every object as if the user had asked for it.
        onQuorumLoss: {
          description:
            "What happens to a tick when no majority of the lock's Redis nodes answers. Proceed (if absent): it runs, " +
            "still at most once, by the claim in the cluster alone. Wait: it waits for a majority.",
          type: "string",
          enum: ["Proceed", "Wait"],
        },
      },
      { default: {} },
    ),
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
    nextScheduleTime: time("The next tick."),
    nextScheduleTimes: {
      description: "The next ticks, soonest first.",
      type: "array",
      maxItems: 5,
      items: { type: "string", format: "date-time" },
      "x-kubernetes-list-type": "atomic",
    },
    tzdata: text("Release of the tz database that the next ticks were found with."),
    token: count("The newest fencing token: it grows with each run.", "int64"),
    lock: object("The lock of the run that is active.", {
      key: text("Its key in Redis."),
      holder: text("The run that holds it."),
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

/** The schema of an object with these fields. */
export function object(
  description: string,
  fields: Fields,
  more: StructuralSchema = {},
): StructuralSchema {
  const names = Object.keys(fields);
  const mandatory = names.filter((name) => fields[name]!.mandatory).sort();
  return {
    description,
    type: "object",
    ...more,
    ...(mandatory.length > 0 ? { required: mandatory } : {}),
    properties: Object.fromEntries(
      names.sort().map((name) => {
        const { mandatory: _, ...schema } = fields[name]!;
        return [name, schema];
      }),
    ),
  };
}
