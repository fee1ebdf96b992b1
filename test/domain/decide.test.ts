/** What is decided about ticks. What is decided about runs is in decide-runs.test.ts. */
import { describe, expect, it } from "vitest";
import { decide, scheduleText } from "../../src/domain/decide/index.ts";
import { MAX_RUNS, type Run } from "../../src/domain/ledger.ts";
import { parseSchedule, parseSpec } from "../../src/domain/schedule/index.ts";
import {
  aJobView,
  aLedger,
  aLockedCronJob,
  anAttempt,
  aRun,
  aStartedRun,
  HOUR,
  MINUTE,
  NOON,
} from "../builders/objects.ts";
import { check } from "../builders/decisions.ts";
import { aSnapshot, present } from "../builders/snapshot.ts";

type Snapshot = Parameters<typeof aSnapshot>[0];
const ONE_PM = NOON + HOUR;
const decidedAtNoon = aLedger({ lastTick: NOON });

describe("a tick", () => {
  check([
    [
      "that is due is launched",
      {},
      { do: "launch", tick: NOON, missed: 0, reason: "Due", at: ONE_PM },
    ],
    [
      "that is not due yet is waited for",
      { now: NOON - 1 },
      { do: "nothing", reason: "NotDue", at: NOON },
    ],
    [
      "that is decided already is not decided again: the next one is waited for",
      { ledger: present(decidedAtNoon) },
      { do: "nothing", reason: "NotDue", at: ONE_PM },
    ],
    [
      "from before the LockedCronJob was made is none of ours",
      { ledger: present(aLedger({ anchor: NOON })) },
      { do: "nothing", reason: "NotDue", at: ONE_PM },
    ],
    [
      "a little late still counts as due",
      { now: NOON + 10_000 },
      { do: "launch", tick: NOON, reason: "Due" },
    ],
    [
      "that was missed is caught up",
      { now: NOON + 10_001 },
      { do: "launch", tick: NOON, missed: 0, reason: "CaughtUp" },
    ],
    [
      "of several that were missed only the latest is caught up, and stands for the others",
      { now: NOON + 2 * HOUR + 20_000 },
      { do: "launch", tick: NOON + 2 * HOUR, missed: 2, reason: "CaughtUp", at: NOON + 3 * HOUR },
    ],
    [
      "of a schedule that never fires is not waited for",
      neverFires(),
      { do: "nothing", reason: "NeverFires" },
    ],
  ]);

  it("that never comes is not looked for again", () => {
    expect(decide(aSnapshot(neverFires()))).not.toHaveProperty("at");
  });

  function neverFires(): Snapshot {
    const owner = aLockedCronJob({ schedule: "0 0 31 2 *" });
    return { owner, ledger: present(aLedger({ schedule: scheduleText(owner) })) };
  }
});

describe("a replica that is not first in line", () => {
  const second = { rank: 1, standByMs: 80 };
  check([
    [
      "stands by for a tick",
      { ...second, now: NOON + 79 },
      { do: "nothing", reason: "StandBy", at: NOON + 80 },
    ],
    ["launches when nobody else has", { ...second, now: NOON + 80 }, { do: "launch", tick: NOON }],
  ]);
});

describe("with startingDeadlineSeconds of a minute", () => {
  const owner = aLockedCronJob({ startingDeadlineSeconds: 60 });
  const yesterdays = { tick: NOON - 24 * HOUR, runId: "r1" };
  const yesterdaysJob = { ...yesterdays, name: "j1", hasLaunchFinalizer: false };
  check([
    ["a tick in time is launched", { owner, now: NOON + MINUTE }, { do: "launch", tick: NOON }],
    [
      "one that is too late is recorded as missed",
      { owner, now: NOON + MINUTE + 1 },
      { do: "miss", tick: NOON, count: 1, reason: "TooLate" },
    ],
    [
      "all of those before it with it",
      { owner, now: NOON + 2 * HOUR + MINUTE + 1 },
      { do: "miss", tick: NOON + 2 * HOUR, count: 3, reason: "TooLate" },
    ],
    [
      "the first in line records it, the others give it time to",
      { owner, now: NOON + MINUTE + 1, rank: 1, standByMs: 80 },
      { do: "nothing", reason: "StandBy", at: NOON + MINUTE + 80 },
    ],
    [
      "and then do so themselves",
      { owner, now: NOON + MINUTE + 80, rank: 1, standByMs: 80 },
      { do: "miss", tick: NOON },
    ],
    [
      "a tick that waits for a run is looked at again when its time is over",
      {
        owner,
        ledger: present(aLedger({ runs: [aStartedRun({ ...yesterdays, jobName: "j1" })] })),
        jobs: [aJobView(yesterdaysJob)],
      },
      { do: "nothing", reason: "JobAlreadyActive", at: NOON + MINUTE + 1 },
    ],
  ]);
});

describe("while a run is active", () => {
  const active = (fields = {}): Snapshot => ({
    ledger: present(aLedger({ runs: [aRun({ tick: NOON - HOUR, jobName: "j1", ...fields })] })),
    oursAt: () => Infinity,
  });
  const running = active({ jobUID: "u1" });
  check([
    [
      "Forbid makes the next tick wait",
      running,
      {
        do: "nothing",
        reason: "JobAlreadyActive",
        event: expect.objectContaining({ type: "Normal", reason: "JobAlreadyActive" }) as never,
      },
    ],
    [
      "Allow launches it",
      { ...running, owner: aLockedCronJob({ concurrencyPolicy: "Allow" }) },
      { do: "launch", tick: NOON },
    ],
    [
      "or being launched, Forbid makes the next tick wait too",
      active(),
      { do: "nothing", reason: "LaunchInProgress" },
    ],
    [
      "that has ended and only waits for its attempts, the next tick is launched",
      active({ jobUID: "u1", ended: true }),
      { do: "launch", tick: NOON },
    ],
    [
      "of a deleted namesake, the next tick is launched",
      active({ of: "owner-0" }),
      { do: "launch", tick: NOON },
    ],
    [
      "the most that there may be make it wait even with Allow",
      {
        owner: aLockedCronJob({ concurrencyPolicy: "Allow" }),
        ledger: present(
          aLedger({
            runs: Array.from({ length: MAX_RUNS }, (_, i) =>
              aRun({ tick: i, runId: `r${i}`, jobName: `j${i}`, jobUID: `u${i}` }),
            ),
          }),
        ),
      },
      { do: "nothing", reason: "TooManyRuns" },
    ],
  ]);

  it("the event about it is given by the first in line alone, and once for each tick", () => {
    const first = decide(aSnapshot(running));
    expect(first.event?.once).toBe("2026-01-01T12:00:00.000Z");
    expect(decide(aSnapshot({ ...running, rank: 1 }))).not.toHaveProperty("event");
    expect(decide(aSnapshot(active()))).not.toHaveProperty("event");
  });
});

describe("nothing is launched", () => {
  check([
    [
      "while it is suspended",
      {
        owner: aLockedCronJob({ suspend: true }),
        ledger: present(aLedger({ suspended: true })),
      },
      { do: "nothing", reason: "Suspended" },
    ],
    ["when the LockedCronJob is gone", { owner: undefined }, { do: "nothing", reason: "Deleted" }],
    [
      "when it is being deleted",
      { owner: aLockedCronJob({}, { deletionTimestamp: "2026-01-01T12:00:00Z" }) },
      { do: "nothing", reason: "Deleted" },
    ],
    [
      "by a schedule that cannot be read; a warning says so",
      {
        owner: aLockedCronJob({ schedule: "often" }, { generation: 4 }),
        schedule: parseSchedule("often"),
      },
      {
        do: "nothing",
        reason: "UnparseableSchedule",
        event: expect.objectContaining({ type: "Warning", once: "generation 4" }) as never,
      },
    ],
    [
      "in a time zone that is unknown",
      {
        owner: aLockedCronJob({ timeZone: "Mars/Olympus" }),
        schedule: parseSchedule("0 * * * *", { timeZone: "Mars/Olympus" }),
      },
      { do: "nothing", reason: "UnknownTimeZone" },
    ],
    [
      "by a ledger that a newer release has written",
      { ledger: { state: "newer", message: "upgrade" } },
      { do: "nothing", reason: "LedgerUnreadable", message: "upgrade" },
    ],
  ]);
});

describe("an edited schedule", () => {
  check([
    [
      "is taken over before anything is launched by it",
      { owner: aLockedCronJob({ schedule: "30 * * * *" }) },
      { do: "rebase", schedule: '["30 * * * *",null]', reason: "ScheduleChanged" },
    ],
    [
      "so is an edited zone",
      { owner: aLockedCronJob({ timeZone: "Europe/Paris" }) },
      { do: "rebase", schedule: '["0 * * * *","Europe/Paris"]' },
    ],
    [
      "also while it is suspended",
      { owner: aLockedCronJob({ schedule: "30 * * * *", suspend: true }) },
      { do: "rebase" },
    ],
  ]);
});

describe("a ledger", () => {
  const made = NOON - 30 * MINUTE;
  check([
    [
      "that is not there is made",
      { ledger: { state: "absent" } },
      { do: "initLedger", reason: "LedgerMissing" },
    ],
    [
      "by the first in line; the others give it time to",
      { ledger: { state: "absent" }, rank: 2, now: made + 5_999 },
      { do: "nothing", reason: "StandBy", at: made + 6_000 },
    ],
    [
      "and then do so themselves",
      { ledger: { state: "absent" }, rank: 2, now: made + 6_000 },
      { do: "initLedger" },
    ],
    [
      "of a namesake is begun anew",
      { ledger: { state: "orphan", why: "namesake" } },
      { do: "initLedger", reason: "LedgerOfNamesake" },
    ],
    [
      "is not made for a LockedCronJob that is gone",
      { ledger: { state: "absent" }, owner: undefined },
      { do: "nothing", reason: "Deleted" },
    ],
  ]);
});

it("what a run needs comes before the next tick", () => {
  const runs = [aStartedRun({ tick: NOON - HOUR, attempts: [anAttempt()] })];
  const owner = aLockedCronJob({ concurrencyPolicy: "Allow" });
  const snapshot = aSnapshot({ owner, ledger: present(aLedger({ runs })), fate: "past" });
  expect(decide(snapshot).do).toBe("settle");
});

describe("a clock that is more than 30 s off the API server's", () => {
  const ahead = { now: NOON + HOUR, clockSkewMs: HOUR };
  const edited = aLedger({ schedule: '["1 1 1 1 1",null]' });
  check([
    ["takes no tick", ahead, { do: "nothing", reason: "ClockSkew", at: NOON + HOUR + 5_000 }],
    ["nor does one that is behind", { clockSkewMs: -HOUR }, { do: "nothing", reason: "ClockSkew" }],
    [
      "moves no anchor into the future",
      { ...ahead, ledger: present(edited) },
      { do: "nothing", reason: "ClockSkew" },
    ],
    [
      "calls no tick too late",
      { ...ahead, owner: aLockedCronJob({ startingDeadlineSeconds: 10 }) },
      { do: "nothing", reason: "ClockSkew" },
    ],
    ["that is off by less launches", { clockSkewMs: 30_000 }, { do: "launch" }],
  ]);

  it("names the skew and the way out", () => {
    expect(decide(aSnapshot(ahead)).message).toContain("3600 s ahead of the API server's");
    expect(decide(aSnapshot({ clockSkewMs: -60_000 })).message).toContain("60 s behind the API");
    expect(decide(aSnapshot(ahead)).message).toContain("NTP");
  });

  it.each<[what: string, fields: Partial<Run>]>([
    ["whose Job did not appear", {}],
    ["that was refused", { refusal: { reason: "", message: "", retryAt: NOON, count: 1 } }],
  ])("neither gives up nor takes over a claim %s", (_, fields) => {
    const run = aRun({ attempts: [anAttempt({ by: "other/1" })], ...fields });
    const ledger = present(aLedger({ lastTick: NOON, runs: [run] }));
    const owner = aLockedCronJob({ startingDeadlineSeconds: 10 });
    const decision = decide(aSnapshot({ ...ahead, owner, ledger, fate: "past" }));
    expect(decision).toMatchObject({ do: "nothing", reason: "ClockSkew" });
    expect(decide(aSnapshot({ ...ahead, ledger, fate: "unsent" }))).toMatchObject({ do: "send" });
  });
});

describe("a tick with jitter", () => {
  const spec = { schedule: "0 * * * *", jitterSeconds: 600 };
  const owner = aLockedCronJob(spec);
  const ledger = present(aLedger({ schedule: scheduleText(owner) }));
  const parsed = parseSpec(owner.spec, "team/report");
  const due = parsed.ok ? parsed.schedule.dueAt(NOON) : NaN;
  const before = parsed.ok ? parsed.schedule.dueAt(NOON - HOUR) : NaN;
  const after = parsed.ok ? parsed.schedule.dueAt(ONE_PM) : NaN;

  it("is put off at all", () => {
    expect(due).toBeGreaterThan(NOON);
  });

  check([
    [
      "is not due before its delay is over, when the one before it is decided",
      {
        owner,
        now: due - 1,
        ledger: present(aLedger({ schedule: scheduleText(owner), lastTick: NOON - HOUR })),
      },
      { do: "nothing", reason: "NotDue", at: due },
    ],
    [
      "lets the one before it run until then",
      {
        owner,
        now: due - 1,
        ledger: present(aLedger({ schedule: scheduleText(owner), anchor: NOON - 2 * HOUR })),
      },
      { do: "launch", tick: NOON - HOUR, reason: before < due - 10_000 ? "CaughtUp" : "Due" },
    ],
    [
      "runs then, under its own name and not as one that was missed",
      { owner, now: due, ledger },
      { do: "launch", tick: NOON, reason: "Due", at: after },
    ],
    [
      "has its whole deadline from then on",
      {
        owner: aLockedCronJob({ ...spec, startingDeadlineSeconds: 20 }),
        now: due + 20_000,
        ledger,
      },
      { do: "launch", tick: NOON },
    ],
    [
      "and no more",
      {
        owner: aLockedCronJob({ ...spec, startingDeadlineSeconds: 20 }),
        now: due + 20_001,
        ledger,
      },
      { do: "miss", tick: NOON, reason: "TooLate" },
    ],
    [
      "is stood by for from then on",
      { owner, now: due + 50, standByMs: 75, ledger },
      { do: "nothing", reason: "StandBy", at: due + 75 },
    ],
  ]);
});

describe("an edit of anything that decides the ticks makes them count anew", () => {
  const plain = present(aLedger({ schedule: scheduleText(aLockedCronJob()) }));
  check(
    (
      [
        { dstPolicy: "RunOnce" },
        { hashSeed: "x" },
        { jitterSeconds: 1 },
        { notBefore: "2026-01-01T00:00:00Z" },
        { notAfter: "2027-01-01T00:00:00Z" },
        { timeZone: "Europe/Berlin" },
      ] as const
    ).map((edit) => [
      JSON.stringify(edit),
      { owner: aLockedCronJob(edit), ledger: plain },
      { do: "rebase", reason: "ScheduleChanged" },
    ]),
  );
});

describe("outside of its window a LockedCronJob has no ticks", () => {
  const over = aLockedCronJob({ notAfter: "2026-01-01T11:59:59Z" });
  check([
    [
      "after it",
      {
        owner: over,
        ledger: present(aLedger({ schedule: scheduleText(over), lastTick: NOON - HOUR })),
      },
      { do: "nothing", reason: "NeverFires" },
    ],
  ]);
});

describe("a ledger that is being deleted and is kept by a finalizer of others", () => {
  const leaving = {
    state: "present" as const,
    ledger: aLedger(),
    leaving: ["example.com/backup"],
  };

  it("takes no claim; it is told of, with the way out", () => {
    const decision = decide(aSnapshot({ ledger: leaving }));
    expect(decision).toMatchObject({
      do: "nothing",
      reason: "LedgerBlocked",
      event: { reason: "LedgerBlocked", type: "Warning" },
    });
    expect(decision.message).toContain("(example.com/backup): no tick can be claimed until");
  });

  it("is told of by one replica only", () => {
    expect(decide(aSnapshot({ ledger: leaving, rank: 1 })).event).toBeUndefined();
  });

  it("takes no further attempt, and lets runs come to their end", () => {
    const refusal = { reason: "", message: "", retryAt: NOON, count: 1 };
    const refused = aRun({ refusal, attempts: [anAttempt({ settled: true })] });
    const open = { ...leaving, ledger: aLedger({ lastTick: NOON, runs: [refused] }) };
    expect(decide(aSnapshot({ ledger: open })).do).toBe("nothing");
    const done = aJobView({ outcome: "Complete", finishedAt: NOON, hasLaunchFinalizer: false });
    const ended = { ...leaving, ledger: aLedger({ lastTick: NOON, runs: [aStartedRun()] }) };
    expect(decide(aSnapshot({ ledger: ended, jobs: [done] })).do).toBe("finish");
  });
});

describe("an open claim whose schedule has become invalid", () => {
  const schedule = {
    ok: false as const,
    reason: "UnknownTimeZone" as const,
    message: "unknown time zone Mars/Base",
  };
  const ledger = present(aLedger({ lastTick: NOON, runs: [aRun()] }));

  it.each(["unsent", "past", "foreign"] as const)("waits, and says so once (%s)", (fate) => {
    expect(decide(aSnapshot({ schedule, ledger, fate }))).toMatchObject({
      do: "nothing",
      reason: "UnknownTimeZone",
      event: { once: "generation 1" },
      at: NOON + 6_000,
    });
  });

  it("is given up when it is too late", () => {
    const owner = aLockedCronJob({ startingDeadlineSeconds: 10 });
    const late = { owner, schedule, ledger, now: NOON + MINUTE, fate: "past" as const };
    expect(decide(aSnapshot(late))).toMatchObject({ do: "abandon", reason: "TooLate" });
  });
});
