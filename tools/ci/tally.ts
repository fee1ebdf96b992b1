/** What a stage of `make test` came to. */
export interface Tally {
  stage: string;
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  /** Why it was skipped or how it broke, in a few words. */
  note?: string;
  /** Names of the failed tests. */
  failures: string[];
}

/** The parts of vitest's JSON report that are read. */
export interface VitestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

/**
 * Counts a run of vitest. Whatever made it end badly counts as at least one failure: a suite that
 * could not be loaded or set up, an unhandled rejection, a report that was never written.
 */
export function tallyVitest(
  stage: string,
  report: VitestReport | undefined,
  ended: { code: number; seconds: number; timedOut: boolean },
): Tally {
  const tally: Tally = {
    stage,
    passed: report?.numPassedTests ?? 0,
    failed: report?.numFailedTests ?? 0,
    skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
    seconds: ended.seconds,
    failures: [],
  };
  for (const file of report?.testResults ?? []) {
    const failed = file.assertionResults.filter((test) => test.status === "failed");
    tally.failures.push(...failed.map((test) => test.fullName));
    if (file.status === "failed" && failed.length === 0) {
      tally.failed += 1;
      tally.failures.push(`${file.name}: ${file.message?.split("\n")[0] ?? "could not run"}`);
    }
  }
  if (ended.timedOut) tally.note = "took too long and was stopped";
  else if (report === undefined) tally.note = `ended with exit code ${ended.code} and no report`;
  else if (ended.code !== 0 && tally.failed === 0) {
    tally.note = "an error outside of the tests; see above";
  }
  if (tally.note !== undefined && tally.failed === 0) {
    tally.failed = 1;
    tally.failures.push(`${stage}: ${tally.note}`);
  }
  return tally;
}

export function countOne(stage: string, good: boolean, seconds: number, note?: string): Tally {
  return {
    stage,
    passed: good ? 1 : 0,
    failed: good ? 0 : 1,
    skipped: 0,
    seconds,
    ...(note !== undefined && { note }),
    failures: good ? [] : [note === undefined ? stage : `${stage}: ${note}`],
  };
}

export function skipStage(stage: string, note: string): Tally {
  return { stage, passed: 0, failed: 0, skipped: 1, seconds: 0, note, failures: [] };
}

/** Table, failed tests and the closing line, which stands alone as the last one. */
export function summarize(tallies: readonly Tally[]): { text: string; good: boolean } {
  const sum = (pick: (tally: Tally) => number): number =>
    tallies.reduce((total, tally) => total + pick(tally), 0);
  const passed = sum((tally) => tally.passed);
  const failed = sum((tally) => tally.failed);
  const skipped = sum((tally) => tally.skipped);
  const width = Math.max(6, ...tallies.map(({ stage }) => stage.length)) + 1;
  const columns = (cells: readonly string[]): string => cells.map((c) => c.padStart(9)).join("");
  const row = (tally: Tally): string => {
    const cells = [tally.passed, tally.failed, tally.skipped].map(String);
    const note = tally.note === undefined ? "" : `  ${tally.note}`;
    return tally.stage.padEnd(width) + columns([...cells, tally.seconds.toFixed(1)]) + note;
  };
  const failures = tallies.flatMap((tally) => tally.failures.map((name) => `  ${name}`));
  const lines = [
    "",
    "stage".padEnd(width) + columns(["passed", "failed", "skipped", "seconds"]),
    ...tallies.map(row),
    ...(failures.length > 0 ? ["", "failed:", ...failures] : []),
    "",
    `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`,
  ];
  return { text: lines.join("\n"), good: failed === 0 && passed > 0 };
}
