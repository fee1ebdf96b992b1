import { expect, it } from "vitest";
import { EventReason } from "../../src/api/reasons.ts";
import { createStatusReport, eventsAtLevel } from "../../src/operator/reports.ts";
import { LOG_LEVELS, type Logger } from "../../src/telemetry/index.ts";
import { aLockedCronJob } from "../builders/objects.ts";

it.each(LOG_LEVELS)(
  "at log level %s: LockAcquired is for debug, the others are recorded",
  (level) => {
    const told: string[] = [];
    const events = eventsAtLevel({ event: (_owner, _type, reason) => told.push(reason) }, level);
    for (const reason of [EventReason.LockAcquired, EventReason.LockLost]) {
      events.event(aLockedCronJob(), "Normal", reason, "text");
    }
    expect(told).toEqual(level === "debug" ? ["LockAcquired", "LockLost"] : ["LockLost"]);
  },
);

it("statuses that are not written are told once in ten seconds, with how many were left out", () => {
  const lines: unknown[] = [];
  let now = 0;
  const log = { warn: (_: string, fields: object) => lines.push(fields) } as unknown as Logger;
  const report = createStatusReport(log, { monotonic: () => now });
  for (const at of [0, 1, 9_999, 10_000]) {
    now = at;
    report(`team/${at}`, "away");
  }
  expect(lines).toEqual([
    { event: "StatusTrouble", key: "team/0", error: "away", next: "retry" },
    { event: "StatusTrouble", key: "team/10000", error: "away", unsaid: 2, next: "retry" },
  ]);
});
