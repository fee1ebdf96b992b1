/**
 * The way from the status that is told to the one that is wanted. What this version does not know is another version's, and
 * stays: if each took away what only the other knows, replicas of two versions would write over each other without end.
 */
import { isDeepStrictEqual } from "node:util";
import { ConditionType } from "../api/reasons.ts";
import type { Condition, LockedCronJobStatus, LockStatus } from "../api/types.ts";
import { isRecord } from "../domain/ledger-json.ts";

interface Fields {
  readonly [name: string]: true | Fields;
}

const LOCK = {
  key: true,
  holder: true,
  mutexes: true,
  validUntil: true,
  renewedBy: true,
} satisfies Record<keyof LockStatus, true>;

/** All that this version writes. */
const FIELDS = {
  observedGeneration: true,
  conditions: true,
  active: true,
  activeCount: true,
  lastScheduleTime: true,
  lastSuccessfulTime: true,
  lastFailureTime: true,
  consecutiveFailures: true,
  nextScheduleTime: true,
  nextScheduleTimes: true,
  resolvedSchedules: true,
  token: true,
  lock: LOCK,
  lastTrigger: true,
  backfill: { id: true, cursor: true },
  decisions: true,
  tzdata: true,
} satisfies Record<keyof LockedCronJobStatus, true | Fields>;

const KNOWN_CONDITIONS: ReadonlySet<string> = new Set(Object.values(ConditionType));

/** A merge patch from one status to the other; undefined when there is nothing to write. */
export function difference(
  old: LockedCronJobStatus,
  wanted: LockedCronJobStatus,
): Record<string, unknown> | undefined {
  const { conditions } = wanted;
  const whole =
    conditions === undefined
      ? wanted
      : { ...wanted, conditions: withForeign(old.conditions ?? [], conditions) };
  return patchOf({ ...old }, { ...whole }, FIELDS);
}

/** A merge patch merges objects as well: a field of one that is no more has to be taken out by name. */
function patchOf(
  old: Record<string, unknown>,
  wanted: Record<string, unknown>,
  fields: Fields,
): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const [field, inner] of Object.entries(fields)) {
    const [a, b] = [old[field], wanted[field]];
    if (inner !== true && isRecord(a) && isRecord(b)) {
      const change = patchOf(a, b, inner);
      if (change !== undefined) patch[field] = change;
    } else if (!isDeepStrictEqual(a, b)) {
      patch[field] = b ?? null;
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** The list is written as a whole: in the order that it has, with the types that this version does not know. */
function withForeign(old: readonly Condition[], wanted: readonly Condition[]): Condition[] {
  const fresh = new Map(wanted.map((condition) => [condition.type, condition]));
  const kept = old.flatMap((condition) => {
    const now = fresh.get(condition.type);
    if (now !== undefined) return [now];
    return KNOWN_CONDITIONS.has(condition.type) ? [] : [condition];
  });
  const told = new Set(old.map(({ type }) => type));
  return [...kept, ...wanted.filter(({ type }) => !told.has(type))];
}
