import { describe, expect, it } from "vitest";
import type { Members } from "../../src/controller/ports.ts";
import { createTurns, crowdMs } from "../../src/controller/turns.ts";
import { anAttempt, aRun } from "../builders/objects.ts";
import { manualTime } from "./manual-time.ts";

const KEY = "team/report";
const TAKE_OVER_MS = 2_000;

function setUp(state: ReturnType<Members["stateOf"]> = "alive", crowd?: () => number) {
  const time = manualTime(0);
  const turns = createTurns({
    process: "me/1",
    clock: time.clock,
    members: { stateOf: () => state },
    takeOverAfterMs: TAKE_OVER_MS,
    ...(crowd === undefined ? {} : { crowdMs: crowd }),
  });
  return { time, turns };
}

const theirs = aRun({ attempts: [anAttempt({ by: "other/1" })] });

describe("what is asked for", () => {
  it("is known from when it was first looked at; something newer of its kind counts anew", async () => {
    const { time, turns } = setUp();
    turns.askedForMs(KEY, "trigger a");
    turns.askedForMs(KEY, "suspend 1");
    await time.pass(500);
    expect(turns.askedForMs(KEY, "trigger a")).toBe(500);
    expect(turns.askedForMs(KEY, "trigger b")).toBe(0);
    await time.pass(500);
    expect(turns.askedForMs(KEY, "suspend 1")).toBe(1_000);
    expect(turns.askedForMs(KEY, "trigger b")).toBe(500);
    turns.forget(KEY);
    expect(turns.askedForMs(KEY, "suspend 1")).toBe(0);
  });
});

describe("the next step of a run", () => {
  it("is ours at once when we made the last attempt", () => {
    const { turns } = setUp();
    const run = aRun({ attempts: [anAttempt({ by: "other/1" }), anAttempt({ n: 2 })] });
    expect(turns.oursAt(KEY, run, 75)).toBe(0);
  });

  it.each([
    ["that lives is left to it for a while", "alive", TAKE_OVER_MS + 75],
    ["that shows no life as well: it may be slow", "silent", TAKE_OVER_MS + 75],
    ["that is dead is left only to the ranks before us", "dead", 75],
    ["that has long been dead, too", "past", 75],
  ] as const)("of a process %s", (_, state, want) => {
    expect(setUp(state).turns.oursAt(KEY, theirs, 75)).toBe(want);
  });

  it("waits from when the run was first seen like this, however often it is asked for", async () => {
    const { time, turns } = setUp();
    turns.oursAt(KEY, theirs, 0);
    await time.pass(500);
    expect(turns.oursAt(KEY, theirs, 0)).toBe(TAKE_OVER_MS);
  });

  it("does not wait longer when the wall clock is set back", async () => {
    const { time, turns } = setUp();
    turns.oursAt(KEY, theirs, 0);
    time.jump(-3_600_000);
    await time.pass(TAKE_OVER_MS);
    expect(turns.oursAt(KEY, theirs, 0)).toBe(time.clock.now());
  });

  it.each([
    ["another attempt", { attempts: [...theirs.attempts, anAttempt({ n: 2, by: "other/1" })] }],
    ["an attempt by another process", { attempts: [anAttempt({ by: "third/1" })] }],
    ["its Job", { jobUID: "job-1" }],
  ])("waits anew when there is %s: it goes on", async (_, change) => {
    const { time, turns } = setUp();
    turns.oursAt(KEY, theirs, 0);
    await time.pass(500);
    expect(turns.oursAt(KEY, { ...theirs, ...change }, 0)).toBe(500 + TAKE_OVER_MS);
  });

  it("waits longer in a crowd", () => {
    expect(setUp("alive", () => 3_000).turns.oursAt(KEY, theirs, 0)).toBe(TAKE_OVER_MS + 3_000);
    expect(setUp("dead", () => 3_000).turns.oursAt(KEY, theirs, 0)).toBe(0);
  });
});

describe("what is over is forgotten", () => {
  const other = aRun({ runId: "r2", attempts: [anAttempt({ by: "other/1" })] });

  it.each([
    ["with its key", []],
    ["run by run", [other]],
  ])("%s", async (_, left) => {
    const { time, turns } = setUp();
    turns.oursAt(KEY, theirs, 0);
    turns.oursAt(KEY, other, 0);
    await time.pass(500);
    turns.keep(KEY, left);
    expect(turns.oursAt(KEY, theirs, 0)).toBe(500 + TAKE_OVER_MS);
    expect(turns.oursAt(KEY, other, 0)).toBe(left.length === 0 ? 500 + TAKE_OVER_MS : TAKE_OVER_MS);
  });

  it("and of other keys nothing is", async () => {
    const { time, turns } = setUp();
    turns.oursAt(KEY, theirs, 0);
    await time.pass(500);
    turns.keep("team/other", []);
    expect(turns.oursAt(KEY, theirs, 0)).toBe(TAKE_OVER_MS);
  });
});

it.each([
  ["one tick is no crowd", 1, 0],
  ["a thousand ticks are given ten seconds", 1_001, 10_000],
  ["and no number of them more than twenty", 1_000_000, 20_000],
])("%s", (_, dueAtOnce, want) => {
  expect(crowdMs(dueAtOnce)).toBe(want);
});
