/** Ticks that could not start when they were due, by policy. */
import { describe, expect } from "vitest";
import type { LockedCronJobSpec } from "../../src/api/types.ts";
import {
  aJobView,
  aLedger,
  aLockedCronJob,
  aStartedRun,
  HOUR,
  MINUTE,
  NOON,
} from "../builders/objects.ts";
import { check } from "../builders/decisions.ts";
import { type aSnapshot, present } from "../builders/snapshot.ts";

type Snapshot = Parameters<typeof aSnapshot>[0];
const spec = (fields: Partial<LockedCronJobSpec>): Snapshot => ({ owner: aLockedCronJob(fields) });
/** The run of eleven o'clock is active. */
const active = (fields = {}): Snapshot => ({
  ledger: present(
    aLedger({
      lastTick: NOON - HOUR,
      anchor: NOON - 24 * HOUR,
      runs: [
        aStartedRun({ tick: NOON - HOUR, runId: "r1", jobName: "j1", jobUID: "u1", ...fields }),
      ],
    }),
  ),
  oursAt: () => Infinity,
  jobs: [aJobView({ name: "j1", uid: "u1", runId: "r1", hasLaunchFinalizer: false })],
});
const third = { rank: 2, standByMs: 150 };

describe("catchUp", () => {
  const threeLate = { now: NOON + 2 * HOUR + 20_000 };
  check([
    [
      "All launches the oldest tick that was missed",
      { ...spec({ catchUp: { policy: "All" } }), ...threeLate },
      { do: "launch", tick: NOON, missed: 0, reason: "CaughtUp" },
    ],
    [
      "All gives up those beyond its limit, the oldest",
      { ...spec({ catchUp: { policy: "All", limit: 2 } }), ...threeLate },
      { do: "miss", tick: NOON, count: 1, reason: "CatchUpLimit" },
    ],
    [
      "All leaves those to the first in line at first",
      { ...spec({ catchUp: { policy: "All", limit: 2 } }), ...third, now: NOON + 2 * HOUR + 149 },
      { do: "nothing", reason: "StandBy", at: NOON + 2 * HOUR + 150 },
    ],
    [
      "All launches nothing that is older than startingDeadlineSeconds",
      {
        ...spec({ catchUp: { policy: "All" }, startingDeadlineSeconds: 3_700 }),
        ...threeLate,
      },
      { do: "miss", tick: NOON, count: 1, reason: "TooLate" },
    ],
    [
      "None launches a tick that is not yet a minute late",
      { ...spec({ catchUp: { policy: "None" } }), now: NOON + MINUTE },
      { do: "launch", tick: NOON },
    ],
    [
      "None launches none that is later",
      { ...spec({ catchUp: { policy: "None" } }), now: NOON + MINUTE + 1 },
      { do: "miss", tick: NOON, count: 1, reason: "NotCaughtUp" },
    ],
    [
      "None leaves that to the first in line at first",
      { ...spec({ catchUp: { policy: "None" } }), ...third, now: NOON + MINUTE + 149 },
      { do: "nothing", reason: "StandBy", at: NOON + MINUTE + 150 },
    ],
    [
      "None launches the tick that is due, and calls those before it missed",
      { ...spec({ catchUp: { policy: "None" } }), now: NOON + 2 * HOUR + 1_000 },
      { do: "launch", tick: NOON + 2 * HOUR, missed: 2 },
    ],
    [
      "None looks again when a tick that waits for a run is late",
      { ...active(), ...spec({ catchUp: { policy: "None" } }) },
      { do: "nothing", reason: "JobAlreadyActive", at: NOON + MINUTE + 1 },
    ],
  ]);
});

describe("concurrencyPolicy Skip", () => {
  const skip = spec({ concurrencyPolicy: "Skip" });
  check([
    [
      "drops a tick that comes due while a run is active",
      { ...active(), ...skip },
      {
        do: "miss",
        tick: NOON,
        count: 1,
        reason: "JobAlreadyActive",
        event: {
          type: "Normal",
          reason: "JobAlreadyActive",
          message:
            "Not starting job because prior execution is running and concurrency policy is Skip",
          once: "2026-01-01T12:00:00.000Z",
        },
      },
    ],
    [
      "also while that is being created",
      { ...active({ jobUID: undefined }), ...skip, jobs: [] },
      { do: "miss", tick: NOON, reason: "JobAlreadyActive" },
    ],
    [
      "leaves that to the first in line at first",
      { ...active(), ...skip, ...third, now: NOON + 149 },
      { do: "nothing", reason: "StandBy", at: NOON + 150 },
    ],
    ["launches a tick when none is", { ...skip }, { do: "launch", tick: NOON }],
  ]);
});

describe("concurrencyPolicy Queue", () => {
  const queue = (fields: Partial<LockedCronJobSpec> = {}): Snapshot =>
    spec({ concurrencyPolicy: "Queue", ...fields });
  const fourDue = { now: NOON + 3 * HOUR + 1_000 };
  check([
    [
      "lets ticks wait for the run",
      { ...active(), ...queue(), ...fourDue },
      { do: "nothing", reason: "JobAlreadyActive" },
    ],
    [
      "launches the oldest of them next",
      { ...active({ ended: true, attempts: [] }), ...queue(), ...fourDue, oursAt: () => Infinity },
      { do: "launch", tick: NOON, missed: 0 },
    ],
    [
      "gives up the oldest beyond its limit, also while a run is active",
      { ...active(), ...queue({ queueLimit: 3 }), ...fourDue },
      { do: "miss", tick: NOON, count: 1, reason: "QueueFull" },
    ],
    [
      "and none within it",
      { ...active(), ...queue({ queueLimit: 4 }), ...fourDue },
      { do: "nothing" },
    ],
  ]);
});

describe("concurrencyPolicy Replace", () => {
  const replace = spec({ concurrencyPolicy: "Replace" });
  const stop = { reason: "Replaced" as const, message: "replaced" };
  check([
    [
      "ends the run that is active",
      { ...active(), ...replace },
      { do: "stop", reason: "Replaced", run: expect.objectContaining({ runId: "r1" }) as never },
    ],
    [
      "leaves that to the first in line at first",
      { ...active(), ...replace, ...third, now: NOON + 149 },
      { do: "nothing", reason: "StandBy", at: NOON + 150 },
    ],
    [
      "waits while one is being created",
      { ...active({ jobUID: undefined }), ...replace, jobs: [] },
      { do: "nothing", reason: "LaunchInProgress" },
    ],
    [
      "waits until the pods of the run that was ended are gone",
      {
        ...active({ stop }),
        ...replace,
        jobs: [
          aJobView({
            name: "j1",
            uid: "u1",
            runId: "r1",
            hasLaunchFinalizer: false,
            deleting: true,
          }),
        ],
      },
      { do: "nothing", reason: "Replaced" },
    ],
    [
      "deletes the Job of a run that is marked, whoever has marked it",
      { ...active({ stop, attempts: [] }), ...replace, now: NOON - 1 },
      { do: "stop", reason: "Replaced", message: "replaced" },
    ],
    [
      "but only the first in line does",
      { ...active({ stop, attempts: [] }), ...replace, ...third, now: NOON - 1 },
      { do: "nothing" },
    ],
    ["launches a tick when no run is active", { ...replace }, { do: "launch", tick: NOON }],
  ]);
});

describe("suspension", () => {
  const suspended = present(aLedger({ suspended: true }));
  check([
    ["is marked in the ledger", spec({ suspend: true }), { do: "noteSuspend" }],
    [
      "by the next one when nobody has",
      { ...spec({ suspend: true }), rank: 1, askedForMs: () => 3_000 },
      { do: "noteSuspend" },
    ],
    [
      "by the first in line",
      { ...spec({ suspend: true }), rank: 1 },
      { do: "nothing", reason: "Suspended" },
    ],
    [
      "once",
      { ...spec({ suspend: true }), ledger: suspended },
      { do: "nothing", reason: "Suspended" },
    ],
    [
      "has to be taken back before anything is launched",
      { ...spec({ suspend: false }), ledger: suspended },
      { do: "resume", reason: "Resumed" },
    ],
  ]);
});
