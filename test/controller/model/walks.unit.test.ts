/**
 * Random walks with three replicas. Each is told by its seed: LOCKEDCRON_MODEL_SEED=<first seed> and
 * LOCKEDCRON_MODEL_WALKS=<how many> repeat or widen what is walked.
 */
import { describe, expect, it } from "vitest";
import { walks } from "./scenarios.ts";
import { walk } from "./walk.ts";
import * as safeguards from "./safeguards.ts";

const FIRST_SEED = Number(process.env.LOCKEDCRON_MODEL_SEED ?? 1);
const WALKS = Number(process.env.LOCKEDCRON_MODEL_WALKS ?? 100);
const MOVES = 400;

describe("three replicas, four ticks, and much that goes wrong", () => {
  it.each(Object.entries(walks))(
    "%s",
    async (name, scenario) => {
      let moves = 0;
      let launched = 0;
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WALKS; seed++) {
        const walked = await walk(scenario, { seed, moves: MOVES });
        expect(walked.violation, `${name}, seed ${seed}`).toBeUndefined();
        moves += walked.moves;
        launched += walked.launched;
      }
      const seeds = `seeds ${FIRST_SEED} to ${FIRST_SEED + WALKS - 1}`;
      console.log(`${name}: ${seeds}, ${moves} moves, ${launched} Jobs`);
      expect(launched).toBeGreaterThan(WALKS);
    },
    3_600_000,
  );
});

it("a walk finds it when attempts are forgotten", async () => {
  for (let seed = 1; seed <= 1_000; seed++) {
    const { violation } = await walk(walks.forbid, {
      seed,
      moves: MOVES,
      tamper: safeguards.takeOverForgets,
    });
    if (violation === undefined) continue;
    expect(violation.what).toBe("a second Job was made for the tick");
    return;
  }
  expect.unreachable("a thousand walks found nothing");
}, 120_000);
