import { describe, expect, it } from "vitest";
import { checkNodeCount, judgeAcquire, judgePresence, quorumOf } from "../../src/lock/quorum.ts";

/** Every way in which up to `nodes` answers can have come in. */
function* tallies(nodes: number) {
  for (let yes = 0; yes <= nodes; yes += 1) {
    for (let no = 0; no <= nodes - yes; no += 1) {
      for (let mute = 0; mute <= nodes - yes - no; mute += 1) yield { yes, no, mute };
    }
  }
}

describe("quorum", () => {
  it("is a majority of the configured nodes", () => {
    expect([1, 3, 4, 5, 6, 7].map(quorumOf)).toEqual([1, 2, 3, 3, 4, 4]);
  });

  it("refuses no nodes and two nodes, and takes one", () => {
    expect(() => checkNodeCount(0)).toThrow(/nodes: is empty/);
    expect(() => checkNodeCount(2)).toThrow(/nodes: has 2 entries/);
    expect(() => checkNodeCount(1)).not.toThrow();
  });
});

describe.each([1, 3, 4, 5, 6, 7])("a decision with %i nodes", (nodes) => {
  it("is always made when all have answered", () => {
    for (const tally of tallies(nodes)) {
      if (tally.yes + tally.no + tally.mute < nodes) continue;
      expect(judgeAcquire(tally, nodes)).not.toBeNull();
      expect(judgePresence(tally, nodes)).not.toBeNull();
    }
  });

  it("is never changed by a later answer", () => {
    for (const tally of tallies(nodes)) {
      for (const judge of [judgeAcquire, judgePresence]) {
        const now = judge(tally, nodes);
        if (now === null || tally.yes + tally.no + tally.mute === nodes) continue;
        for (const answer of ["yes", "no", "mute"] as const) {
          const then = judge({ ...tally, [answer]: tally[answer] + 1 }, nodes);
          expect([tally, answer, then]).toEqual([tally, answer, now]);
        }
      }
    }
  });

  it("says acquired only with a majority of yes, and two attempts can never both have one", () => {
    for (const tally of tallies(nodes)) {
      const won = judgeAcquire(tally, nodes) === "acquired";
      expect(won).toBe(tally.yes * 2 > nodes);
    }
  });

  it("says gone only when the mute and pending nodes could not make a majority of it", () => {
    for (const tally of tallies(nodes)) {
      if (judgePresence(tally, nodes) !== "gone") continue;
      expect((nodes - tally.no) * 2).toBeLessThanOrEqual(nodes);
    }
  });

  it("tells a busy lock (a majority answered) from a missing backend", () => {
    const decided = (wanted: string) =>
      [...tallies(nodes)].filter((tally) => judgeAcquire(tally, nodes) === wanted);
    const answered = decided("held").map(({ yes, no }) => yes + no);
    const away = decided("noQuorum").map(({ mute }) => mute);
    expect(answered.every((count) => count * 2 > nodes)).toBe(true);
    expect(away.every((count) => count * 2 >= nodes)).toBe(true);
  });
});
