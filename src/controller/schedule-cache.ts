import type { Key } from "../api/names.ts";
import type { LockedCronJob } from "../api/types.ts";
import { parseSpec, specText, type ParseScheduleResult } from "../domain/schedule/index.ts";

export interface ScheduleCache {
  of(key: Key, owner: LockedCronJob): ParseScheduleResult;
  forget(key: Key): void;
}

/** A schedule is parsed once for each text of it, not on each look. */
export function createScheduleCache(): ScheduleCache {
  const parsed = new Map<Key, { spec: object; text: string; result: ParseScheduleResult }>();
  return {
    of(key, { spec }) {
      const known = parsed.get(key);
      // The same object as last time is the usual case, and costs no text.
      if (known?.spec === spec) return known.result;
      // A name makes no tick another one, but the schedule tells it.
      const names = spec.schedules?.map(({ name }) => name ?? "").join() ?? "";
      const text = `${specText(spec)} ${names}`;
      const result = known?.text === text ? known.result : parseSpec(spec, key);
      parsed.set(key, { spec, text, result });
      return result;
    },
    forget(key) {
      parsed.delete(key);
    },
  };
}
