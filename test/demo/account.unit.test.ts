import { describe, expect, it } from "vitest";
import { Reason } from "../../src/api/reasons.ts";
import { claim } from "../../src/domain/claim.ts";
import { endRun } from "../../src/domain/ledger-end.ts";
import { miss, newLedger, settle, type Ledger } from "../../src/domain/ledger.ts";
import { parseSchedule, type Schedule } from "../../src/domain/schedule/index.ts";
import { accountOf, type Evidence } from "./account.ts";

const ANCHOR = Date.parse("2026-01-01T12:00:00Z");
const tick = (n: number): number => ANCHOR + n * 10_000;

function everyTenSeconds(): Schedule {
  const parsed = parseSchedule("@every 10s");
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.schedule;
}

const job = (n: number, uid = `uid-${n}`) => ({
  uid,
  owner: "owner",
  tick: tick(n),
  name: `x-${n}`,
});

const empty = newLedger({ owner: "owner", schedule: '["@every 10s",null]', anchor: ANCHOR });

const missed = (n: number, reason: string, at = tick(n)) => ({
  at,
  tick: tick(n),
  decision: "Missed" as const,
  reason,
  message: `because of ${reason}`,
  replica: "a",
});

/** Claims a tick; `passing` says of how many earlier ones it is that they will not run. */
const claimed = (ledger: Ledger, n: number, passing = 0): Ledger =>
  claim(ledger, {
    tick: tick(n),
    runId: `run-${n}`,
    jobName: `x-${n}`,
    lockKey: "k",
    lockValue: "v",
    by: "a/1",
    why: Reason.Due,
    missed: passing,
    decisions: passing === 0 ? [] : [missed(n, Reason.Superseded)],
  });

const account = (o: Partial<Omit<Evidence, "history">> & { ledgers?: readonly Ledger[] }) =>
  accountOf({
    name: "x",
    schedule: everyTenSeconds(),
    anchor: ANCHOR,
    until: tick(3),
    jobs: [1, 2, 3].map((n) => job(n)),
    ...o,
    history: (o.ledgers ?? []).map((ledger) => ({ ledger })),
  });

describe("an account", () => {
  it("is clean when each due tick has one Job", () => {
    expect(account({})).toEqual({
      name: "x",
      due: [1, 2, 3].map(tick),
      launched: 3,
      missed: [],
      unexplained: [],
      duplicates: 0,
      strays: [],
    });
  });

  it("counts neither the anchor nor what comes after the end as due", () => {
    expect(account({ until: tick(3) - 1, jobs: [job(1), job(2)] }).due).toEqual([tick(1), tick(2)]);
  });

  it("counts a second Job of a tick, also after the end", () => {
    const jobs = [1, 2, 3, 4].map((n) => job(n));
    expect(account({ jobs: [...jobs, job(2, "other")] }).duplicates).toBe(1);
    expect(account({ jobs: [...jobs, job(4, "other"), job(4, "third")] }).duplicates).toBe(2);
  });

  it("takes Jobs of two LockedCronJobs of one name for no duplicate", () => {
    const jobs = [1, 2, 3].map((n) => job(n));
    const namesake = { ...job(2, "other"), owner: "namesake" };
    expect(account({ jobs: [...jobs, namesake] }).duplicates).toBe(0);
  });

  it("names Jobs for instants that are no ticks", () => {
    const odd = { ...job(2, "odd"), tick: tick(2) + 1_000, name: "x-odd" };
    const early = { ...job(0), name: "x-early" };
    expect(account({ jobs: [1, 2, 3].map((n) => job(n)).concat(odd, early) }).strays).toEqual([
      "x-odd",
      "x-early",
    ]);
  });
});

describe("a tick without a Job", () => {
  const jobs = [job(1), job(3)];

  it("is unexplained when the ledger has not come to it", () => {
    expect(account({ jobs, ledgers: [claimed(empty, 1)] }).unexplained).toEqual([tick(2)]);
  });

  it("is unexplained when the ledger went past it without a word", () => {
    const first = claimed(empty, 1);
    const third = claimed(first, 3);
    expect(account({ jobs, ledgers: [first, third] }).unexplained).toEqual([tick(2)]);
  });

  it("is unexplained when it was claimed and its Job never came", () => {
    const second = claimed(claimed(empty, 1), 2);
    expect(account({ jobs, ledgers: [second, claimed(second, 3)] }).unexplained).toEqual([tick(2)]);
  });

  it("is missed for the reason that the ledger gives when it goes past it", () => {
    const first = claimed(empty, 1);
    expect(account({ jobs, ledgers: [first, claimed(first, 3, 1)] })).toMatchObject({
      launched: 2,
      unexplained: [],
      missed: [{ tick: tick(2), reason: Reason.Superseded }],
    });
  });

  it("is missed when it was too late, and so are those before it that went with it", () => {
    const late = miss(claimed(empty, 1), tick(3), 2, missed(3, Reason.TooLate));
    expect(account({ jobs: [job(1)], ledgers: [claimed(empty, 1), late] }).missed).toEqual([
      { tick: tick(2), reason: Reason.TooLate, message: "because of TooLate" },
      { tick: tick(3), reason: Reason.TooLate, message: "because of TooLate" },
    ]);
  });

  it("is missed when it was claimed and given up later, not because its claim passed others", () => {
    const third = claimed(claimed(empty, 1), 3, 1);
    const ledgers = [claimed(empty, 1), third];
    expect(account({ jobs: [job(1)], ledgers }).unexplained).toEqual([tick(3)]);
    const givenUp = endRun(settle(third, "run-3", [1]), "run-3", {
      decision: missed(3, Reason.TooLate, tick(4)),
      missed: 1,
    });
    expect(account({ jobs: [job(1)], ledgers: [...ledgers, givenUp] })).toMatchObject({
      unexplained: [],
      missed: [
        { tick: tick(2), reason: Reason.Superseded },
        { tick: tick(3), reason: Reason.TooLate },
      ],
    });
  });

  it("keeps its reason when the decision has dropped off the ledger since", () => {
    const first = claimed(empty, 1);
    const third = claimed(first, 3, 1);
    const later = { ...third, lastTick: tick(9), decisions: [] };
    expect(account({ jobs, ledgers: [first, third, later] }).missed).toHaveLength(1);
  });
});
