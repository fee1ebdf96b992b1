import { describe, expect, it } from "vitest";
import { createAgenda } from "../../src/controller/agenda.ts";
import { createSweeper, PRIORITY } from "../../src/controller/sweeper.ts";
import { HOUR } from "../builders/objects.ts";
import { manualTime } from "./manual-time.ts";

function aSweeper(keys: readonly string[] = []) {
  const time = manualTime();
  const agenda = createAgenda();
  const added: [string, number][] = [];
  const state = { skewMs: 0, running: true };
  const sweeper = createSweeper({
    clock: time.clock,
    agenda,
    skewMs: () => state.skewMs,
    rank: (key) => (key === "first" ? 0 : 1),
    running: () => state.running,
    keys: () => keys,
    onDue: () => undefined,
    add: (key, priority) => void added.push([key, priority]),
  });
  const beat = async (afterMs: number): Promise<[string, number][]> => {
    await time.pass(afterMs);
    sweeper.beat();
    return added.splice(0);
  };
  return { time, agenda, sweeper, state, beat };
}

describe("a pulse", () => {
  it("finds what is due, the ticks that this replica is first in line for before the others", async () => {
    const { time, agenda, beat, sweeper } = aSweeper();
    agenda.set("later", time.clock.now() + 1_000);
    agenda.set("first", time.clock.now() + 1_000);
    agenda.set("tomorrow", time.clock.now() + 24 * HOUR);
    expect(new Map(await beat(1_000))).toEqual(
      new Map([
        ["first", PRIORITY.due],
        ["later", PRIORITY.dueLater],
      ]),
    );
    expect(sweeper.dueAtOnce()).toBe(2);
    expect(sweeper.beatAt()).toBe(time.clock.now());
  });

  it("leaves all alone until the caches are complete", async () => {
    const { time, agenda, state, beat } = aSweeper(["a"]);
    state.running = false;
    agenda.set("a", time.clock.now());
    expect(await beat(1_000)).toEqual([]);
    state.running = true;
    expect(await beat(1_000)).toHaveLength(1);
  });

  it("after a pause lets the watches speak first", async () => {
    const { time, agenda, beat } = aSweeper();
    agenda.set("first", time.clock.now() + 1_000);
    expect(await beat(60_000)).toEqual([]);
    expect(await beat(1_000)).toHaveLength(1);
  });
});

describe("instants that were noted by a wrong clock are noted anew", () => {
  it("when the clock agrees with the API server's again", async () => {
    const { time, agenda, state, beat } = aSweeper(["a", "b"]);
    time.jump(24 * HOUR);
    state.skewMs = 24 * HOUR;
    await beat(1_000);
    agenda.set("a", time.clock.now() + HOUR);
    expect(await beat(1_000)).toEqual([]);
    state.skewMs = 0;
    expect(await beat(1_000)).toEqual([
      ["a", PRIORITY.dueLater],
      ["b", PRIORITY.dueLater],
    ]);
    expect(await beat(1_000)).toEqual([]);
  });

  it("when the clock is set back", async () => {
    const { time, beat } = aSweeper(["a"]);
    await beat(1_000);
    time.jump(-20_000);
    expect(await beat(1_000)).toEqual([["a", PRIORITY.dueLater]]);
  });
});
