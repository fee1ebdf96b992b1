import { expect, it } from "vitest";
import { createGone } from "../../src/controller/gone.ts";

it("the last ones are remembered, older ones not for ever", () => {
  const gone = createGone(3);
  for (const uid of ["a", "b", "c", "d", "e", "f"]) gone.add(uid);
  expect(["a", "b", "c", "d", "e", "f"].filter(gone.has)).toEqual(["a", "b", "c", "d", "e", "f"]);
  gone.add("g");
  expect(["a", "b", "c", "d", "e", "f", "g"].filter(gone.has)).toEqual(["d", "e", "f", "g"]);
});

it("what is there again is not gone", () => {
  const gone = createGone(1);
  gone.add("older");
  gone.add("recent");
  gone.back("older");
  gone.back("recent");
  expect(["older", "recent"].filter(gone.has)).toEqual([]);
});
