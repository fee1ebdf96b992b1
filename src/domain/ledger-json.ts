/** The ledger as JSON: versioned, and read with suspicion, since anybody may edit an annotation. */
import { LEDGER_VERSION, type Ledger } from "./ledger.ts";
import type { LockTerms } from "./lock-terms.ts";

export type ParsedLedger =
  | { ok: true; ledger: Ledger }
  | { ok: false; reason: "empty" | "garbled" | "newer"; message: string };

/** Reads a ledger; never throws. A garbled one is not guessed at: the caller rebuilds or stops. */
export function parseLedger(text: string | undefined): ParsedLedger {
  if (text === undefined || text === "") {
    return { ok: false, reason: "empty", message: "the Lease carries no ledger" };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: "garbled", message: "the ledger is not JSON" };
  }
  if (!isRecord(value) || typeof value.version !== "number") {
    return { ok: false, reason: "garbled", message: "the ledger has no version" };
  }
  if (value.version > LEDGER_VERSION) {
    return {
      ok: false,
      reason: "newer",
      message: `the ledger has version ${value.version}, this replica knows up to ${LEDGER_VERSION}: upgrade it`,
    };
  }
  return isLedger(value)
    ? { ok: true, ledger: value }
    : {
        ok: false,
        reason: "garbled",
        message: "the ledger lacks a field or has one of a wrong type",
      };
}

/** As the lowest version that can say it, so that replicas of the release before can read it while they are replaced. */
export function serializeLedger(ledger: Ledger): string {
  const needed = ledger.runs.some((r) => r.waiting ?? r.keptUntil) ? LEDGER_VERSION : 1;
  return JSON.stringify({ ...ledger, version: needed });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLedger(value: Record<string, unknown>): value is Record<string, unknown> & Ledger {
  return (
    typeof value.owner === "string" &&
    typeof value.schedule === "string" &&
    ["anchor", "lastTick", "token", "missed"].every((f) => Number.isFinite(value[f])) &&
    ["lastLaunched", "lastSuccess", "lastFailure", "consecutiveFailures"].every(
      (f) => value[f] === undefined || Number.isFinite(value[f]),
    ) &&
    (value.triggers === undefined ||
      (Array.isArray(value.triggers) && value.triggers.every((id) => typeof id === "string"))) &&
    (value.backfill === undefined || isBackfill(value.backfill)) &&
    Array.isArray(value.decisions) &&
    value.decisions.every(isDecision) &&
    Array.isArray(value.runs) &&
    value.runs.every(isRun)
  );
}

function isDecision(value: unknown): boolean {
  return (
    isRecord(value) &&
    Number.isFinite(value.at) &&
    Number.isFinite(value.tick) &&
    typeof value.message === "string"
  );
}

function isRefusal(value: unknown): boolean {
  return (
    isRecord(value) &&
    Number.isFinite(value.retryAt) &&
    Number.isFinite(value.count) &&
    typeof value.reason === "string" &&
    typeof value.message === "string"
  );
}

function isStop(value: unknown): boolean {
  return isRecord(value) && typeof value.reason === "string" && typeof value.message === "string";
}

/** Terms as a Job's annotation has them; undefined when they make no sense. */
export function parseTerms(text: string | undefined): LockTerms | undefined {
  // The usual case, on each change of each Job: an exception for it would cost as much as all the rest of the Job.
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isTerms(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isTerms(value: unknown): value is LockTerms {
  return (
    isRecord(value) &&
    ["leaseSeconds", "atLeastSeconds", "atMostSeconds"].every(
      (f) => value[f] === undefined || Number.isFinite(value[f]),
    ) &&
    (value.onLost === undefined || value.onLost === "Suspend" || value.onLost === "Delete") &&
    (value.mutexes === undefined ||
      (Array.isArray(value.mutexes) && value.mutexes.every((m) => typeof m === "string")))
  );
}

function isWaiting(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value.by === "string" &&
    ["since", "until", "retryMs"].every((f) => Number.isFinite(value[f])) &&
    (value.on === undefined ||
      (isRecord(value.on) &&
        ["mutex", "reason", "message"].every((f) => typeof (value.on as never)[f] === "string")))
  );
}

function isManual(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value.id === "string" &&
    (value.kind === "trigger" || value.kind === "backfill")
  );
}

function isBackfill(value: unknown): boolean {
  return isRecord(value) && typeof value.id === "string" && Number.isFinite(value.cursor);
}

function isRun(value: unknown): boolean {
  return (
    isRecord(value) &&
    Number.isFinite(value.tick) &&
    Number.isFinite(value.token) &&
    ["runId", "jobName", "lockKey", "lockValue", "why"].every(
      (f) => typeof value[f] === "string",
    ) &&
    (value.refusal === undefined || isRefusal(value.refusal)) &&
    (value.stop === undefined || isStop(value.stop)) &&
    (value.lock === undefined || isTerms(value.lock)) &&
    (value.waiting === undefined || isWaiting(value.waiting)) &&
    (value.keptUntil === undefined || Number.isFinite(value.keptUntil)) &&
    (value.manual === undefined || isManual(value.manual)) &&
    Array.isArray(value.attempts) &&
    (value.attempts.length === 0) === (value.waiting !== undefined) &&
    value.attempts.every(
      (a) =>
        isRecord(a) &&
        typeof a.n === "number" &&
        typeof a.by === "string" &&
        typeof a.settled === "boolean",
    )
  );
}
