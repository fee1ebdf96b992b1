import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseLedger, serializeLedger } from "../../src/domain/ledger-json.ts";
import { LEDGER_VERSION } from "../../src/domain/ledger.ts";
import { aDecision, aLedger, aRun, aStartedRun } from "../builders/objects.ts";

const full = aLedger({
  runs: [aRun(), aStartedRun({ runId: "r2" })],
  decisions: [aDecision()],
  lastLaunched: 5,
});

it("what was written is read again", () => {
  expect(parseLedger(serializeLedger(full))).toEqual({ ok: true, ledger: full });
});

describe("is left alone or made anew, never guessed at", () => {
  const without = (field: string): string => JSON.stringify({ ...full, [field]: undefined });
  const withRun = (run: object): string => JSON.stringify({ ...full, runs: [run] });
  it.each<[what: string, text: string | undefined, reason: string, says: string]>([
    ["no annotation", undefined, "empty", "the Lease carries no ledger"],
    ["an empty annotation", "", "empty", "the Lease carries no ledger"],
    ["no JSON", "{", "garbled", "the ledger is not JSON"],
    ["a list", "[]", "garbled", "the ledger has no version"],
    ["null", "null", "garbled", "the ledger has no version"],
    ["no version", without("version"), "garbled", "the ledger has no version"],
    [
      "a newer version",
      JSON.stringify({ ...full, version: LEDGER_VERSION + 1 }),
      "newer",
      `the ledger has version ${LEDGER_VERSION + 1}, this replica knows up to ${LEDGER_VERSION}: upgrade it`,
    ],
    ["no owner", without("owner"), "garbled", "lacks a field"],
    ["no schedule", without("schedule"), "garbled", "lacks a field"],
    ["no anchor", without("anchor"), "garbled", "lacks a field"],
    ["no last tick", without("lastTick"), "garbled", "lacks a field"],
    ["no token", without("token"), "garbled", "lacks a field"],
    ["no runs", without("runs"), "garbled", "lacks a field"],
    ["no decisions", without("decisions"), "garbled", "lacks a field"],
    ["a token in words", JSON.stringify({ ...full, token: "7" }), "garbled", "of a wrong type"],
    ["a run that is none", withRun(["x"]), "garbled", "of a wrong type"],
    ["a run with no attempt", withRun(aRun({ attempts: [] })), "garbled", "of a wrong type"],
    [
      "an attempt of nobody",
      withRun({ ...aRun(), attempts: [{ n: 1, settled: false }] }),
      "garbled",
      "of a wrong type",
    ],
    [
      "an attempt that is settled perhaps",
      withRun({ ...aRun(), attempts: [{ n: 1, by: "me/1", settled: 0 }] }),
      "garbled",
      "of a wrong type",
    ],
    [
      "a refusal that names no moment",
      withRun({ ...aRun(), refusal: { reason: "Forbidden", message: "", count: 1 } }),
      "garbled",
      "of a wrong type",
    ],
    [
      "a decision of no moment",
      JSON.stringify({ ...full, decisions: [{ ...aDecision(), at: "now" }] }),
      "garbled",
      "of a wrong type",
    ],
    ["a run with no lock", withRun({ ...aRun(), lockKey: 1 }), "garbled", "of a wrong type"],
  ])("%s", (_, text, reason, says) => {
    expect(parseLedger(text)).toEqual({
      ok: false,
      reason,
      message: expect.stringContaining(says) as unknown,
    });
  });
});

it("nothing that anybody may write there makes it throw", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      expect(parseLedger(text).ok).toBe(false);
    }),
  );
});
