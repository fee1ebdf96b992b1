/** Readiness checks in which several parts have a say: such a check passes only while none of them complains. */
import type { Health } from "../telemetry/index.ts";

export interface Troubles {
  /** The complaint of one part; it replaces the one before. */
  set(source: string, check: string, reason: string): void;
  clear(source: string): void;
  /** These were made: they pass unless somebody complains. */
  checked(...checks: string[]): void;
}

export function createTroubles(health: Pick<Health, "set">): Troubles {
  const complaints = new Map<string, { check: string; reason: string }>();

  function checked(...checks: string[]): void {
    for (const check of checks) {
      const found = [...complaints.values()].find((complaint) => complaint.check === check);
      health.set(check, found === undefined ? { ok: true } : { ok: false, reason: found.reason });
    }
  }

  return {
    checked,
    set(source, check, reason) {
      const before = complaints.get(source)?.check;
      complaints.set(source, { check, reason });
      checked(...new Set([check, before ?? check]));
    },
    clear(source) {
      const before = complaints.get(source)?.check;
      complaints.delete(source);
      if (before !== undefined) checked(before);
    },
  };
}
