/**
 * The launch protocol as a model over the real code: every interleaving of two replicas within stated bounds
 * (scenarios.ts). Wider bounds, which take minutes each: LOCKEDCRON_MODEL=wide.
 */
import { describe, expect, it } from "vitest";
import { explore, type Report } from "./explore.ts";
import { scenarios, wide, wideMutex } from "./scenarios.ts";
import type { Scenario } from "./types.ts";

const chosen: Record<string, Scenario> =
  process.env.LOCKEDCRON_MODEL === "wide"
    ? { ...scenarios, ...wide, mutexWide: wideMutex.mutex }
    : scenarios;

describe("within all interleavings no tick runs twice, none is lost, no finalizer stays", () => {
  it.each(Object.entries(chosen))(
    "%s",
    async (name, scenario) => {
      const report = await explore(scenario);
      console.log(`${name}: ${summary(report)}`);
      expect(report.violation).toBeUndefined();
      // A world in which hardly anything can happen would prove nothing.
      expect(report.states).toBeGreaterThan(1_000);
    },
    3_600_000,
  );
});

function summary({ states, moves, depth, situations }: Report): string {
  return `${states} states, ${moves} moves, ${depth} deep, ${situations} situations put to the code`;
}
