/** spec.lock. Only fields that work may stand here. */
import { object, type Field } from "./object.ts";

const SECONDS_PER_DAY = 86_400;
const NAME = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

function seconds(description: string, minimum: number, maximum: number): Field {
  return { description, type: "integer", format: "int32", minimum, maximum };
}

export function lockField(): Field {
  return object(
    "How a run is locked, among the replicas of the operator and against other runs. An edit applies to the next run.",
    {
      leaseSeconds: {
        ...seconds(
          "Lease of the locks that a run holds, in seconds. They are renewed every third of it while the run's pods live.",
          5,
          3600,
        ),
        default: 30,
      },
      waitSeconds: {
        ...seconds(
          "How long a tick waits for mutexes that are busy. After that it is recorded as missed.",
          0,
          SECONDS_PER_DAY,
        ),
        default: 0,
      },
      retryIntervalSeconds: {
        ...seconds("How often it looks while it waits.", 1, 3600),
        default: 1,
      },
      atLeastSeconds: {
        ...seconds(
          "How long the locks are kept at least, also when the run is over sooner.",
          0,
          SECONDS_PER_DAY,
        ),
        default: 0,
      },
      atMostSeconds: seconds(
        "After how long the run is ended: activeDeadlineSeconds of its Job, unless that is shorter. No limit if absent.",
        1,
        7 * SECONDS_PER_DAY,
      ),
      mutexes: {
        description:
          "Names of locks that a run holds besides its own, all or none; runs that share one never run at the same time. " +
          "A name alone is of this namespace; namespace/name is of another one, which the operator must have been told to share.",
        type: "array",
        maxItems: 8,
        items: { type: "string", maxLength: 127, pattern: `^(${NAME}/)?${NAME}$` },
        "x-kubernetes-list-type": "set",
      },
      onLost: {
        description:
          "What becomes of a run whose lock somebody else has taken, which takes a majority of Redis nodes that lost it. " +
          "Continue: it goes on, and an event says so. Suspend: its Job is suspended. Delete: its Job is deleted.",
        type: "string",
        enum: ["Continue", "Suspend", "Delete"],
        default: "Continue",
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
    {
      default: {},
      "x-kubernetes-validations": [
        {
          rule: "!has(self.atMostSeconds) || !has(self.atLeastSeconds) || self.atLeastSeconds <= self.atMostSeconds",
          message: "atLeastSeconds must not be more than atMostSeconds",
          fieldPath: ".atLeastSeconds",
        },
      ],
    },
  );
}
