/**
 * A case: the same spec put side by side. What a LockedCronJob is to do stands here in full, so that it is judged by itself too: the
 * oracle forgets a Job now and then.
 */
import type { Manifest } from "../crd/fixture.ts";
import type { Stage } from "./stage.ts";

/**
 * Which Job: of one of the two ticks that are waited for, of the past or two minutes later, of the object's own interval;
 * or the rest of its name.
 */
export type Which = "first" | "second" | "past" | "past+2" | "every" | `by-${string}`;

/** What is let differ: each stands in docs/cronjob-differences.md, beside the name of its case. */
export interface Difference {
  /** Events that one side gives and the other does not. */
  events?: RegExp;
  /** Which Jobs are active, by the status. */
  active?: true;
  /** What is said of the second tick: after refusals each side looks again in its own time. */
  second?: true;
  /** Anything: the oracle is too late for it on a machine that is busy. */
  late?: true;
  /** The CronJob does something else altogether, and it is this. */
  native?: { jobs: readonly Which[]; reasons: readonly string[] };
}

/** `every`: each 95 s since creation, of which one is within the time that is compared. */
export const EVERY_S = 95;

export interface Case {
  name: string;
  /** @param past the top of an hour of six hours ago, ms: a tick that nobody ran */
  change: (m: Manifest, past: Date) => void;
  /** The last tick that has run: what the controllers know of the time before. */
  last?: (past: Date) => Date;
  /** Only the status tells it, as when both were restored from a backup. */
  restored?: true;
  /** The LockedCronJob's Jobs at the end, in the order of their creation. */
  jobs: readonly Which[];
  /** Reasons of the LockedCronJob's events, in alphabetical order. */
  reasons: readonly string[];
  /** One that may be among them, as the machine is slow or fast. */
  perhaps?: string;
  differs?: Difference;
  /** Its ticks count from its creation: both have to be made in the same second. */
  sameSecond?: true;
  /** Done before the first tick, after it, and after the second one. */
  early?: (stage: Stage) => Promise<void>;
  between?: (stage: Stage) => Promise<void>;
  late?: (stage: Stage) => Promise<void>;
  /** Done when all is over, and the Jobs that are left then, without an owner. */
  end?: (stage: Stage) => Promise<void>;
  left?: readonly Which[];
}

export const DAY = 86_400_000;

/** Done without a pod, as soon as the Job controller sees it. */
export const atOnce = { completions: 0, parallelism: 0 };
/** Never done, and without a pod. */
export const never = { suspend: true };

export const job = (m: Manifest, fields: object): void =>
  void Object.assign(m.spec.jobTemplate.spec, fields);

export const LAUNCHED = ["SuccessfulCreate"];
export const DONE = ["SawCompletedJob", "SuccessfulCreate"];
export const PRUNED = ["SawCompletedJob", "SuccessfulCreate", "SuccessfulDelete"];
export const BOTH = ["first", "second"] as const;
export const POLICIES = ["Allow", "Forbid", "Replace"] as const;

/** Every day at the hour of the tick that was missed. */
export const daily = (m: Manifest, past: Date, minutes = "0"): void =>
  void (m.spec.schedule = `${minutes} ${past.getUTCHours()} * * *`);
export const dayBefore = (past: Date): Date => new Date(past.getTime() - DAY);
