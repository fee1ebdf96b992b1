import { claim, type Claim } from "../../src/domain/claim.ts";
import { describe, expect, it } from "vitest";
import { closeRun, endRun } from "../../src/domain/ledger-end.ts";
import {
  activeRuns,
  addAttempt,
  findRun,
  hasUnsettled,
  MAX_DECISIONS,
  miss,
  mustStay,
  recordRefusal,
  recordStarted,
  settle,
  type Ledger,
  type Run,
} from "../../src/domain/ledger.ts";
import {
  aDecision,
  aLedger,
  anAttempt,
  aRun,
  aStartedRun,
  HOUR,
  NOON,
} from "../builders/objects.ts";

const RUN_ID = aRun().runId;

function aClaim(fields: Partial<Claim> = {}): Claim {
  const { tick, runId, jobName, lockKey, lockValue, why } = aRun();
  return {
    tick,
    runId,
    jobName,
    lockKey,
    lockValue,
    why,
    by: "me/1",
    missed: 0,
    decisions: [],
    ...fields,
  };
}

const runIn = (ledger: Ledger, runId = RUN_ID): Run | undefined => findRun(ledger, runId);

describe("a claim", () => {
  it("adds the run with its first attempt, moves lastTick and gives the next token", () => {
    const ledger = claim(aLedger({ token: 6 }), aClaim());
    expect(ledger).toMatchObject({ lastTick: NOON, token: 7 });
    expect(ledger.runs).toEqual([aRun({ token: 7 })]);
  });

  it("counts the ticks that it stands for, and says so", () => {
    const superseded = aDecision({ decision: "Missed" });
    const ledger = claim(aLedger({ missed: 1 }), aClaim({ missed: 2, decisions: [superseded] }));
    expect(ledger).toMatchObject({ missed: 3, decisions: [superseded] });
  });

  it.each([
    ["the last one", NOON],
    ["an earlier one", NOON + HOUR],
  ])("of a tick that is decided is refused: %s", (_, lastTick) => {
    expect(() => claim(aLedger({ lastTick }), aClaim())).toThrow("is decided already");
  });

  it("leaves the version that it was made on as it was", () => {
    const before = aLedger();
    claim(before, aClaim());
    expect(before).toEqual(aLedger());
  });
});

describe("a missed tick", () => {
  it("is decided and counted", () => {
    const missed = miss(aLedger({ missed: 4 }), NOON, 3, aDecision({ decision: "Missed" }));
    expect(missed).toMatchObject({ lastTick: NOON, missed: 7 });
    expect(missed.decisions).toHaveLength(1);
  });

  it("does not take lastTick back", () => {
    expect(miss(aLedger({ lastTick: NOON + HOUR }), NOON, 1, aDecision()).lastTick).toBe(
      NOON + HOUR,
    );
  });
});

describe("another attempt", () => {
  it("gets the next number and keeps the one whose POST may still arrive", () => {
    const { ledger, n } = addAttempt(aLedger({ runs: [aRun()] }), RUN_ID, "other/1");
    expect(n).toBe(2);
    expect(runIn(ledger)?.attempts).toEqual([anAttempt(), anAttempt({ n: 2, by: "other/1" })]);
  });

  it("takes the place of settled ones, but never their number", () => {
    const attempts = [anAttempt({ settled: true }), anAttempt({ n: 2, settled: true })];
    const { ledger, n } = addAttempt(aLedger({ runs: [aRun({ attempts })] }), RUN_ID, "me/1");
    expect(n).toBe(3);
    expect(runIn(ledger)?.attempts).toEqual([anAttempt({ n: 3 })]);
  });

  it.each<[string, Run[]]>([
    ["whose Job is known", [aStartedRun()]],
    ["that the ledger does not have", []],
  ])("is refused to a run %s", (_, runs) => {
    expect(() => addAttempt(aLedger({ runs }), RUN_ID, "me/1")).toThrow("takes no further attempt");
  });
});

describe("a started run", () => {
  const refusal = { reason: "Forbidden", message: "quota", retryAt: NOON, count: 2 };
  const run = aRun({ attempts: [anAttempt(), anAttempt({ n: 2, by: "other/1" })], refusal });
  const started = recordStarted(
    aLedger({ runs: [run] }),
    RUN_ID,
    "job-1",
    2,
    aDecision({ tick: NOON }),
  );

  it("knows its Job, and that the attempt which the Job bears has arrived; of others it does not", () => {
    expect(runIn(started)).toMatchObject({
      jobUID: "job-1",
      attempts: [anAttempt(), anAttempt({ n: 2, by: "other/1", settled: true })],
    });
  });

  it("is refused no more", () => {
    expect(runIn(started)).not.toHaveProperty("refusal");
  });

  it("is the newest one launched, unless a newer tick was", () => {
    const newer = aLedger({ runs: [run], lastLaunched: NOON + HOUR });
    expect(started.lastLaunched).toBe(NOON);
    expect(recordStarted(newer, RUN_ID, "job-1", 2, aDecision()).lastLaunched).toBe(NOON + HOUR);
  });

  it("counts as active", () => {
    expect(activeRuns(started)).toHaveLength(1);
  });
});

describe("settling", () => {
  const run = aRun({ attempts: [anAttempt(), anAttempt({ n: 2 })] });

  it("touches the attempts named, and no others", () => {
    expect(runIn(settle(aLedger({ runs: [run] }), RUN_ID, [2]))?.attempts).toEqual([
      anAttempt(),
      anAttempt({ n: 2, settled: true }),
    ]);
  });

  it("of a run that is gone changes nothing", () => {
    expect(settle(aLedger(), RUN_ID, [1])).toEqual(aLedger());
  });

  it("of the last one lets the ledger go: until then it must stay", () => {
    const half = settle(aLedger({ runs: [run] }), RUN_ID, [2]);
    expect([mustStay(half), mustStay(settle(half, RUN_ID, [1]))]).toEqual([true, false]);
  });
});

describe("a refusal", () => {
  const refused = { reason: "Forbidden", message: "quota", retryAt: NOON + 1 };
  const ledger = aLedger({ runs: [aRun({ attempts: [anAttempt(), anAttempt({ n: 2 })] })] });

  it("settles the attempt that was refused, and only that", () => {
    const run = runIn(recordRefusal(ledger, RUN_ID, 2, refused));
    expect(run?.attempts.map((a) => a.settled)).toEqual([false, true]);
  });

  it("that was seen without a POST settles nothing", () => {
    const run = runIn(recordRefusal(ledger, RUN_ID, undefined, refused));
    expect(run?.attempts.map((a) => a.settled)).toEqual([false, false]);
  });

  it("is counted, so that the next one waits longer", () => {
    const twice = recordRefusal(recordRefusal(ledger, RUN_ID, 1, refused), RUN_ID, 2, refused);
    expect(runIn(twice)?.refusal).toEqual({ ...refused, count: 2 });
  });
});

describe("the end of a run", () => {
  const ended = { decision: aDecision({ decision: "Finished" }) };

  it("takes it off the ledger when all is settled", () => {
    expect(endRun(aLedger({ runs: [aStartedRun()] }), RUN_ID, ended).runs).toEqual([]);
  });

  it("leaves it there while a POST may still arrive, but it excludes nobody any more", () => {
    const run = aRun({ jobUID: "job-1" });
    const ledger = endRun(aLedger({ runs: [run] }), RUN_ID, ended);
    expect(ledger.runs).toEqual([{ ...run, ended: true }]);
    expect(activeRuns(ledger)).toEqual([]);
    expect(mustStay(ledger)).toBe(true);
  });

  it("in success starts the count of failures anew", () => {
    const before = aLedger({ runs: [aStartedRun()], consecutiveFailures: 3 });
    expect(endRun(before, RUN_ID, { ...ended, success: NOON + 5 })).toMatchObject({
      lastSuccess: NOON + 5,
      consecutiveFailures: 0,
    });
  });

  it("in failure counts on", () => {
    const before = aLedger({ runs: [aStartedRun()], consecutiveFailures: 3 });
    expect(endRun(before, RUN_ID, { ...ended, failure: NOON + 5 })).toMatchObject({
      lastFailure: NOON + 5,
      consecutiveFailures: 4,
    });
  });

  it("of an older run does not take the times back", () => {
    const before = aLedger({ runs: [aStartedRun()], lastSuccess: NOON + HOUR });
    expect(endRun(before, RUN_ID, { ...ended, success: NOON }).lastSuccess).toBe(NOON + HOUR);
  });

  it("without a Job counts a missed tick", () => {
    const run = aRun({ attempts: [anAttempt({ settled: true })] });
    expect(endRun(aLedger({ runs: [run] }), RUN_ID, { ...ended, missed: 1 }).missed).toBe(1);
  });

  it("cannot be closed while a POST may still arrive", () => {
    expect(() => closeRun(aLedger({ runs: [aRun()] }), RUN_ID)).toThrow("may still arrive");
  });
});

it("an attempt is unsettled until all are settled", () => {
  const attempts = [anAttempt({ settled: true }), anAttempt({ n: 2 })];
  expect([hasUnsettled(aRun({ attempts })), hasUnsettled(aStartedRun())]).toEqual([true, false]);
});

it("the run of a namesake excludes nobody", () => {
  expect(activeRuns(aLedger({ runs: [aRun({ of: "owner-0" }), aRun({ runId: "r2" })] }))).toEqual([
    aRun({ runId: "r2" }),
  ]);
});

it("only the newest decisions are kept", () => {
  let ledger = aLedger();
  for (let tick = 1; tick <= MAX_DECISIONS + 2; tick++) {
    ledger = miss(ledger, tick, 1, aDecision({ tick }));
  }
  expect(ledger.decisions).toHaveLength(MAX_DECISIONS);
  expect(ledger.decisions.map((d) => d.tick)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
});
