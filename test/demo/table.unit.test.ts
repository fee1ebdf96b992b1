import { describe, expect, it } from "vitest";
import { Reason } from "../../src/api/reasons.ts";
import type { Row } from "./board.ts";
import { header, lines, stateLines, type Paint } from "./table.ts";

const plain: Paint = (_, text) => text;
const TICK = Date.parse("2026-01-01T12:00:10Z");

const row = (fields: Partial<Row> = {}): Row => ({
  sample: "every-ten-seconds",
  tick: TICK,
  winner: "charlie",
  attempt: 1,
  election: { outcome: "won", ms: 1.94 },
  latencyMs: 33,
  phase: "Succeeded",
  says: "run every-ten-seconds-1767268810.0c1f5a52 token 1 ends",
  lock: { votes: 5, nodes: 5, ttlMs: 14_100, held: false },
  settled: true,
  ...fields,
});

describe("a row", () => {
  it("is one line where there is room", () => {
    expect(lines(row(), plain, Infinity, false)).toEqual([
      "12:00:10  every-ten-seconds  charlie  1.9 ms     +33 ms   Succeeded  5/5 14s  run every-ten-seconds-1767268810.0c1f5a52 token 1 ends",
    ]);
    expect(header(plain, Infinity)).toBe(
      "tick UTC  lockedcronjob      winner   election   job      pod        lock     the pod's log",
    );
  });

  it("keeps the end of a log that does not fit", () => {
    const [line = ""] = lines(row(), plain, 110, false);
    expect(line).toHaveLength(110);
    expect(line).toMatch(/ {2}….*0c1f5a52 token 1 ends$/);
  });

  it("is two lines of at most 77 characters on a terminal of 80", () => {
    const two = lines(row({ says: `${"long ".repeat(20)}end` }), plain, 77, false);
    expect(two).toHaveLength(2);
    expect(two.every((line) => line.length <= 77)).toBe(true);
    expect(header(plain, 77).length).toBeLessThanOrEqual(77);
  });

  it("says who took over, and when there was no quorum", () => {
    const taken = row({ attempt: 2, election: { outcome: "noQuorum", ms: 3 } });
    expect(lines(taken, plain, Infinity, false)[0]).toMatch(
      /charlie {2}no quorum .* taken over, attempt 2: run every/,
    );
  });

  it("shows what is not known yet as nothing", () => {
    const due: Row = { sample: "every-minute", tick: TICK, settled: false };
    expect(lines(due, plain, Infinity, false)).toEqual([
      "12:00:10  every-minute                                    due",
    ]);
  });

  it("gives the reason of a tick that did not run", () => {
    const missed = (reason: string, message: string): string[] =>
      lines(row({ missed: { reason, message } }), plain, Infinity, false);
    expect(missed(Reason.TooLate, "it could not start in time")).toEqual([
      "12:00:10  every-ten-seconds  not run: TooLate, it could not start in time",
    ]);
    expect(missed(Reason.Superseded, "2 earlier ticks did not run")).toEqual([
      "12:00:10  every-ten-seconds  not run: Superseded, a later tick runs instead",
    ]);
  });
});

it("the state names who is not well, who holds which lock, and what comes next", () => {
  const value = "every-ten-seconds-1767268810.0c1f5a52#x1";
  const lock = { sample: "every-ten-seconds", key: "k", answers: 3 };
  const state = {
    players: [
      { name: "alpha", condition: "up" as const },
      { name: "bravo", condition: "frozen" as const },
    ],
    redis: ["up", "quarantined", "down"] as const,
    locks: [
      { ...lock, holder: { value, votes: 2, pttlMs: 12_940 } },
      { ...lock, holder: null },
      { ...lock, holder: null, answers: 1 },
      { ...lock, holder: null, key: undefined },
    ],
    next: [
      { sample: "every-ten-seconds", inMs: 4_200 },
      { sample: "every-minute", inMs: undefined },
    ],
  };
  expect(stateLines(state, plain)).toEqual([
    "replicas  ● alpha up   ● bravo frozen",
    "redis     ● 1   ● 2 quarantined   ● 3 down",
    "locks     every-ten-seconds-1767268810.0c1f5a52 on 2 of 3, 12.9 s left",
    "          every-ten-seconds: free",
    "          every-ten-seconds: no majority of Redis answers",
    "          every-ten-seconds: no run yet",
    "next      every-ten-seconds in 5 s   every-minute soon",
  ]);
});
