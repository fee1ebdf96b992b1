import type { Key } from "../api/names.ts";
import type { LockedCronJob } from "../api/types.ts";
import { parseSchedule, type ParseScheduleResult } from "../domain/schedule/index.ts";

export interface ScheduleCache {
  of(key: Key, owner: LockedCronJob): ParseScheduleResult;
  forget(key: Key): void;
}

/** A schedule is parsed once for each text and zone, not on each look. */
export function createScheduleCache(): ScheduleCache {
  const parsed = new Map<
    Key,
    { text: string; zone: string | undefined; result: ParseScheduleResult }
  >();
  return {
    of(key, owner) {
      const { schedule: text, timeZone: zone } = owner.spec;
      const known = parsed.get(key);
      if (known?.text === text && known.zone === zone) return known.result;
      const result = parseSchedule(text, { timeZone: zone });
      parsed.set(key, { text, zone, result });
      return result;
    },
    forget(key) {
      parsed.delete(key);
    },
  };
}
