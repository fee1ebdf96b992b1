/** A schedule as the spec of a LockedCronJob has it: one expression or several, and everything that bears on its ticks. */
import type { ScheduleSpec } from "../../api/types.ts";
import { readMember, type Member } from "./member.ts";
import { parseInstant } from "./rfc3339.ts";
import { scheduleOf, type ParseScheduleResult } from "./schedule.ts";

/** All fields of a spec that decide when its ticks are; an edit of any of them makes ticks count anew. */
const FIELDS = [
  "schedule",
  "schedules",
  "timeZone",
  "dstPolicy",
  "hashSeed",
  "jitterSeconds",
  "notBefore",
  "notAfter",
] as const satisfies readonly (keyof ScheduleSpec)[];

/**
 * @param identity `namespace/name` of the LockedCronJob: what `H` and jitter are hashed from unless `hashSeed` says else
 */
export function parseSpec(spec: ScheduleSpec, identity: string): ParseScheduleResult {
  const seed = spec.hashSeed ?? identity;
  const entries =
    spec.schedules ?? (spec.schedule === undefined ? [] : [{ schedule: spec.schedule }]);
  if (spec.schedule !== undefined && spec.schedules !== undefined) {
    return refused("schedule and schedules are both given: keep one of them");
  }
  if (entries.length === 0) return refused("neither schedule nor schedules is given");
  const members: Member[] = [];
  for (const [i, entry] of entries.entries()) {
    const read = readMember(entry.schedule, {
      timeZone: ("timeZone" in entry ? entry.timeZone : undefined) ?? spec.timeZone,
      seconds: "auto",
      dstPolicy: spec.dstPolicy,
      seed,
      name: "name" in entry ? entry.name : undefined,
    });
    const where = spec.schedules === undefined ? "" : `schedules[${i}]: `;
    if (!read.ok) return { ...read, message: `${where}${read.message}` };
    if (spec.schedules !== undefined && read.member.intervalSeconds !== null) {
      return refused(
        `${where}@every counts from the last run, which has no meaning beside other schedules: write it as fields, ` +
          "such as 0 */6 * * *",
      );
    }
    members.push(read.member);
  }
  const [notBefore, notAfter] = [spec.notBefore, spec.notAfter].map((text) =>
    text === undefined ? undefined : (parseInstant(text) ?? NaN),
  );
  if (Number.isNaN(notBefore))
    return refused(`notBefore ${quote(spec.notBefore)} is no RFC 3339 time`);
  if (Number.isNaN(notAfter))
    return refused(`notAfter ${quote(spec.notAfter)} is no RFC 3339 time`);
  const { jitterSeconds } = spec;
  return { ok: true, schedule: scheduleOf(members, { notBefore, notAfter, jitterSeconds, seed }) };
}

function refused(message: string): ParseScheduleResult {
  return { ok: false, reason: "UnparseableSchedule", message };
}

function quote(text: string | undefined): string {
  return JSON.stringify(text);
}

/**
 * What the ledger remembers of a spec. The plain form of one expression and its zone is that of the first releases: a
 * ledger of theirs must not look edited.
 */
export function specText(spec: ScheduleSpec): string {
  const plain = FIELDS.every(
    (field) => field === "schedule" || field === "timeZone" || spec[field] === undefined,
  );
  if (plain) return JSON.stringify([spec.schedule, spec.timeZone ?? null]);
  // A name decides no tick: giving one must not make ticks count anew.
  const schedules = spec.schedules?.map((one) => {
    const { name: _, ...rest } = one;
    return rest;
  });
  const unnamed = { ...spec, schedules };
  return JSON.stringify(Object.fromEntries(FIELDS.map((field) => [field, unnamed[field]])));
}

/** The spec that a text of `specText` was made from; undefined when it is no such text. */
export function specOfText(text: string): ScheduleSpec | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) {
    return typeof value === "object" && value !== null ? value : undefined;
  }
  const [schedule, timeZone] = value as [string, string | null];
  return { schedule, ...(timeZone === null ? {} : { timeZone }) };
}
