/** The fields that say what becomes of ticks that cannot start when they are due. docs/missed-ticks.md explains them. */
import { object, type Fields } from "./object.ts";
import type { ValidationRule } from "./openapi.ts";

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

export function policyFields(): Fields {
  return {
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
        "From when an edited schedule (with all that decides its ticks) counts. FromNow (if absent): from the edit. CatchUp, as CronJob does: " +
        "from the last tick, so that ticks which only the new schedule has had since then run too.",
      type: "string",
      enum: ["CatchUp", "FromNow"],
    },
  };
}
