import { expect, it } from "vitest";
import { EventReason } from "../../src/api/reasons.ts";
import { eventsAtLevel } from "../../src/operator/reports.ts";
import { LOG_LEVELS } from "../../src/telemetry/index.ts";
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
