import { describe, expect, it } from "vitest";
import { countOne, skipStage, summarize, tallyVitest } from "../../tools/ci/tally.ts";
import type { VitestReport } from "../../tools/ci/tally.ts";

const good = { code: 0, seconds: 1, timedOut: false };
const bad = { ...good, code: 1 };

function report(o: Partial<VitestReport> = {}): VitestReport {
  return {
    numPassedTests: 0,
    numFailedTests: 0,
    numPendingTests: 0,
    numTodoTests: 0,
    testResults: [],
    ...o,
  };
}

describe("a run of vitest counts", () => {
  it("what its report says", () => {
    const counted = report({ numPassedTests: 5, numPendingTests: 2, numTodoTests: 1 });
    expect(tallyVitest("unit", counted, good)).toMatchObject({ passed: 5, failed: 0, skipped: 3 });
  });

  it("its failed tests, by name", () => {
    const failed = report({
      numPassedTests: 1,
      numFailedTests: 1,
      testResults: [
        {
          name: "a.test.ts",
          status: "failed",
          assertionResults: [
            { fullName: "a works", status: "passed" },
            { fullName: "b works", status: "failed" },
          ],
        },
      ],
    });
    const tally = tallyVitest("unit", failed, bad);
    expect(tally).toMatchObject({ passed: 1, failed: 1, failures: ["b works"] });
  });

  it("a file that could not be loaded as a failure, though no test of it failed", () => {
    const broken = report({
      numPassedTests: 3,
      testResults: [
        {
          name: "a.test.ts",
          status: "failed",
          message: "no such module\nat x",
          assertionResults: [],
        },
      ],
    });
    expect(tallyVitest("unit", broken, bad)).toMatchObject({
      failed: 1,
      failures: ["a.test.ts: no such module"],
    });
  });

  it("a file whose set-up failed as a failure, though its tests only look skipped", () => {
    const broken = report({
      numPendingTests: 1,
      testResults: [
        {
          name: "a.test.ts",
          status: "failed",
          message: "beforeAll",
          assertionResults: [{ fullName: "a works", status: "skipped" }],
        },
      ],
    });
    expect(tallyVitest("redis", broken, bad)).toMatchObject({ failed: 1, skipped: 1 });
  });

  it("an error outside of the tests", () => {
    expect(tallyVitest("unit", report({ numPassedTests: 3 }), bad)).toMatchObject({
      passed: 3,
      failed: 1,
      failures: ["unit: an error outside of the tests; see above"],
    });
  });

  it("a run that wrote no report", () => {
    const tally = tallyVitest("unit", undefined, { ...bad, code: 134 });
    expect(tally).toMatchObject({ failed: 1, note: "ended with exit code 134 and no report" });
  });

  it("a run that had to be stopped", () => {
    const stopped = { ...good, timedOut: true };
    expect(tallyVitest("unit", report({ numPassedTests: 3 }), stopped)).toMatchObject({
      passed: 3,
      failed: 1,
      note: "took too long and was stopped",
    });
  });
});

describe("the summary", () => {
  const unit = tallyVitest("unit", report({ numPassedTests: 10 }), good);

  it("ends in the count, alone on its line", () => {
    const { text, good: passed } = summarize([unit, countOne("demo", true, 2)]);
    expect(text.split("\n").at(-1)).toBe("11 passed, 0 failed");
    expect(passed).toBe(true);
  });

  it("counts what was skipped, with the reason in the table", () => {
    const { text, good: passed } = summarize([unit, skipStage("nodes", "needs root")]);
    expect(text.split("\n").at(-1)).toBe("10 passed, 0 failed, 1 skipped");
    expect(text).toMatch(/^nodes .* needs root$/m);
    expect(passed).toBe(true);
  });

  it("is bad when one failed, and names it", () => {
    const { text, good: passed } = summarize([unit, countOne("demo", false, 2, "exit code 1")]);
    expect(text.split("\n").at(-1)).toBe("10 passed, 1 failed");
    expect(text).toContain("\n  demo: exit code 1\n");
    expect(passed).toBe(false);
  });

  it.each([[[]], [[skipStage("nodes", "needs root")]]])("is bad when no test ran", (tallies) => {
    expect(summarize(tallies).good).toBe(false);
  });
});
