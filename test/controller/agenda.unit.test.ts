import { expect, it } from "vitest";
import { createAgenda } from "../../src/controller/agenda.ts";

it("an instant that is not a number is refused, and holds up no other key", () => {
  const agenda = createAgenda();
  agenda.set("team/report", 1_000);
  expect(() => agenda.set("team/broken", Number.NaN)).toThrow(RangeError);
  expect(agenda.due(1_000)).toEqual(["team/report"]);
});
