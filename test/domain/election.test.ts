import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rankOf, standByMs } from "../../src/domain/election.ts";
import { hash32 } from "../../src/domain/hash.ts";

const REPLICAS = ["replica-0", "replica-1", "replica-2", "replica-3", "replica-4"];
const keys = Array.from({ length: 5_000 }, (_, i) => `team/report-${i}`);

describe("ranks", () => {
  it("are a permutation for every key, whoever computes them and in whatever order it knows them", () => {
    fc.assert(
      fc.property(fc.string(), fc.shuffledSubarray(REPLICAS, { minLength: 1 }), (key, members) => {
        const ranks = members.map((self) => rankOf(self, members, key));
        expect(ranks.toSorted((a, b) => a - b)).toEqual(members.map((_, i) => i));
      }),
    );
  });

  it("give every replica its share of the keys", () => {
    for (const self of REPLICAS) {
      const first = keys.filter((key) => rankOf(self, REPLICAS, key) === 0).length;
      expect(first).toBeGreaterThan(900);
      expect(first).toBeLessThan(1_100);
    }
  });

  it("hand on only the keys of a replica that goes, each to the one that was second", () => {
    const rest = REPLICAS.slice(1);
    for (const key of keys.slice(0, 500)) {
      const before = rest.map((self) => rankOf(self, REPLICAS, key));
      const gone = rankOf("replica-0", REPLICAS, key);
      const after = rest.map((self) => rankOf(self, rest, key));
      expect(after).toEqual(before.map((rank) => (rank > gone ? rank - 1 : rank)));
    }
  });

  it("count a replica that does not know of itself yet as if it did", () => {
    for (const key of keys.slice(0, 100)) {
      expect(rankOf("replica-0", REPLICAS.slice(1), key)).toBe(rankOf("replica-0", REPLICAS, key));
    }
  });

  it("are told apart by name when two weigh the same", () => {
    // These two hash to the same 32 bits for this key; found by trying.
    const [a, b, key] = collision();
    expect([rankOf(a, [a, b], key), rankOf(b, [a, b], key)].toSorted((x, y) => x - y)).toEqual([
      0, 1,
    ]);
  });
});

function collision(): [string, string, string] {
  const key = "k";
  const seen = new Map<number, string>();
  for (let i = 0; ; i++) {
    const name = `r${i}`;
    const hash = hash32(`${name}|${key}`);
    const other = seen.get(hash);
    if (other !== undefined) return [other, name, key];
    seen.set(hash, name);
  }
}

describe("standing by", () => {
  it.each([
    ["the first in line does not", 0, 1_000, 0],
    ["the second does for one delay", 1, 0, 75],
    ["each rank for one more", 3, 0, 225],
    ["longer in a crowd, which the first in line needs longer to get through", 1, 100, 375],
    ["but not without end", 1, 1_000_000, 5_075],
  ])("%s", (_, rank, dueAtOnce, want) => {
    expect(standByMs(rank, dueAtOnce, 75)).toBe(want);
  });
});
