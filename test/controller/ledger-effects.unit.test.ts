import { describe, expect, it } from "vitest";
import { rebase } from "../../src/controller/ledger-effects.ts";
import { scheduleText } from "../../src/domain/decide/index.ts";
import type { Ledger } from "../../src/domain/ledger.ts";
import { aContext, aRecord } from "../builders/context.ts";
import { aLedger, aLockedCronJob, HOUR, MINUTE, NOON } from "../builders/objects.ts";

const KEY = "team/report";

describe("an edited schedule", () => {
  const edited = aLockedCronJob({ schedule: "30 * * * *" });
  const action = { do: "rebase" as const, schedule: scheduleText(edited) };
  const old = aLedger({ lastTick: NOON - HOUR });

  async function rebased(live: ReturnType<typeof aLockedCronJob> | undefined, now: number) {
    const written: Ledger[] = [];
    const missed: number[] = [];
    const context = aContext({
      clock: { now: () => now },
      owners: { read: async () => live },
      observe: { missed: ({ count }) => void missed.push(count) },
      ledgers: {
        async write(_, ledger) {
          written.push(ledger);
          return aRecord(ledger);
        },
      },
    });
    const result = await rebase(context, KEY, aRecord(old), old, action);
    return { result, written, missed };
  }

  it("counts from the moment of the edit", async () => {
    const now = NOON - MINUTE;
    const { written, missed } = await rebased(edited, now);
    expect(written).toEqual([{ ...old, schedule: action.schedule, anchor: now }]);
    expect(missed).toEqual([]);
  });

  it("says of ticks that were due by the old one that they will not run", async () => {
    const { written, missed } = await rebased(edited, NOON + HOUR + MINUTE);
    expect(written[0]).toMatchObject({ lastTick: NOON + HOUR, missed: 2 });
    expect(written[0]?.decisions).toMatchObject([
      { decision: "Missed", reason: "ScheduleChanged" },
    ]);
    expect(missed).toEqual([2]);
  });

  it.each([
    ["a copy of the schedule that is behind", aLockedCronJob()],
    ["a copy of a namesake", aLockedCronJob({ schedule: "30 * * * *" }, { uid: "owner-2" })],
    ["nobody", undefined],
  ])("is not taken from %s", async (_, live) => {
    const { result, written } = await rebased(live, NOON);
    expect(written).toEqual([]);
    expect(result).toMatchObject({ next: "again", at: NOON + 1_000 });
  });
});
