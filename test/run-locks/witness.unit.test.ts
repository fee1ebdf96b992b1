import { expect, it } from "vitest";
import { overlaps, tokensThatDoNotGrow, type Line } from "./witness.ts";

/** `a1 a2 b1`: run a wrote by its pods 1 and 2, then run b. */
const lines = (text: string): Line[] =>
  text.split(" ").map((word) => ({ run: word[0] ?? "", pod: word, what: "alive" }));

it.each<[what: string, text: string, wrong: number]>([
  ["one that comes back", "a1 a1 b1 b1 a2", 2],
  ["one after another, each once", "a1 a1 b1 b1 c1", 0],
  ["two pods of one run", "a1 a2 a1 b1", 0],
  ["one in the middle of another", "a1 b1 a1", 1],
])("%s", (_, text, wrong) => {
  expect(overlaps(lines(text), [])).toHaveLength(wrong);
});

it("what a force-deleted pod writes afterwards is not judged", () => {
  expect(overlaps(lines("a1 b1 a1"), [{ pod: "a1", at: 1 }])).toEqual([]);
});

it.each<[what: string, written: string, wrong: number]>([
  ["grow with each run", "a3 a3 b4 c9", 0],
  ["the same twice", "a3 b4 c4", 1],
  ["one that is lower", "a3 b5 c4", 1],
  ["none", "a", 1],
])("tokens: %s", (_, written, wrong) => {
  const said = written.split(" ").map((word) => ({
    run: word[0] ?? "",
    pod: word,
    what: "alive" as const,
    token: Number(word.slice(1)),
  }));
  expect(tokensThatDoNotGrow(said)).toHaveLength(wrong);
});
