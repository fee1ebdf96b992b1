/** Runs that people ask for: one now (a trigger), or those of a range of past ticks (a backfill). */
import {
  BACKFILL_ANNOTATION,
  TRIGGER_ANNOTATION,
  TRIGGER_POLICY_ANNOTATION,
} from "../api/names.ts";
import type { LockedCronJob } from "../api/types.ts";
import { hash32 } from "./hash.ts";
import { parseInstant } from "./schedule/index.ts";

/** What a run was asked for by; it moves no tick of the schedule. */
export interface Manual {
  /** Of the trigger or the backfill: each is carried out once. */
  id: string;
  kind: "trigger" | "backfill";
}

export type Parsed<T> = { ok: true; value: T } | { ok: false; message: string };

export interface Trigger {
  id: string;
  /** Whether it waits for runs that exclude it. */
  policy: "Obey" | "Override";
}

export interface Backfill {
  id: string;
  /** First and last tick, both included, ms. */
  from: number;
  to: number;
  /** Whether its runs exclude each other and all others. */
  policy: "Forbid" | "Allow";
}

const MAX_ID = 253;

export function triggerOf({ metadata }: LockedCronJob): Parsed<Trigger> | undefined {
  const id = metadata.annotations?.[TRIGGER_ANNOTATION];
  if (id === undefined || id === "") return undefined;
  if (id.length > MAX_ID) {
    return wrong(
      TRIGGER_ANNOTATION,
      id.slice(0, 20) + "…",
      `an id of at most ${MAX_ID} characters`,
    );
  }
  const policy = metadata.annotations?.[TRIGGER_POLICY_ANNOTATION] ?? "Obey";
  if (policy !== "Obey" && policy !== "Override") {
    return wrong(TRIGGER_POLICY_ANNOTATION, policy, "Obey or Override");
  }
  return { ok: true, value: { id, policy } };
}

const BACKFILL_FORM =
  '{"id": …, "from": RFC 3339, "to": RFC 3339, "policy": "Forbid" (default) or "Allow"}';

export function backfillOf({ metadata }: LockedCronJob): Parsed<Backfill> | undefined {
  const text = metadata.annotations?.[BACKFILL_ANNOTATION];
  if (text === undefined || text === "") return undefined;
  const refuse = (): Parsed<Backfill> =>
    wrong(BACKFILL_ANNOTATION, text.slice(0, 200), BACKFILL_FORM);
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return refuse();
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return refuse();
  const { id, from, to, policy = "Forbid", ...rest } = fields as Record<string, unknown>;
  const [first, last] = [instantOf(from), instantOf(to)];
  if (typeof id !== "string" || id === "" || id.length > MAX_ID) return refuse();
  if (first === undefined || last === undefined || first > last) return refuse();
  if (policy !== "Forbid" && policy !== "Allow") return refuse();
  if (Object.keys(rest).length > 0) return refuse();
  return { ok: true, value: { id, from: first, to: last, policy } };
}

function instantOf(text: unknown): number | undefined {
  return typeof text === "string" ? (parseInstant(text) ?? undefined) : undefined;
}

function wrong<T>(annotation: string, value: string, want: string): Parsed<T> {
  return { ok: false, message: `annotation ${annotation} "${value}": write ${want}` };
}

/**
 * The name of a manual run's Job: `<name>-m…` or `<name>-b…` and nine characters of a hash, as long as a tick's at most.
 * The same request names the same Job on every replica.
 */
export function manualJobName(name: string, { id, kind }: Manual, tick: number): string {
  const what = kind === "trigger" ? id : `${id}@${tick}`;
  const bits = (BigInt(hash32(`${what}|1`)) << 32n) | BigInt(hash32(`${what}|2`));
  const digits = bits.toString(36).padStart(13, "0").slice(-9);
  return `${name}-${kind === "trigger" ? "m" : "b"}${digits}`;
}
