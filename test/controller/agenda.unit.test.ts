import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAgenda } from "../../src/controller/agenda.ts";

describe("what is due", () => {
  it("comes earliest first, once, and not before its time", () => {
    const agenda = createAgenda();
    agenda.set("late", 300);
    agenda.set("early", 100);
    agenda.set("middle", 200);
    expect(agenda.due(99)).toEqual([]);
    expect(agenda.due(200)).toEqual(["early", "middle"]);
    expect(agenda.due(200)).toEqual([]);
    expect(agenda.size()).toBe(1);
  });

  it("comes all at once after a pulse that was late", () => {
    const agenda = createAgenda();
    for (const at of [5, 3, 4, 1, 2]) agenda.set(`at ${at}`, at);
    expect(agenda.due(1_000)).toEqual(["at 1", "at 2", "at 3", "at 4", "at 5"]);
  });
});

describe("the newest word on a key counts", () => {
  it.each([
    ["when it is later", 100, 200],
    ["when it is earlier", 200, 100],
    ["when it is the same", 100, 100],
  ])("%s", (_, first, second) => {
    const agenda = createAgenda();
    agenda.set("report", first);
    agenda.set("report", second);
    expect(agenda.due(second - 1)).toEqual([]);
    expect(agenda.due(1_000)).toEqual(["report"]);
    expect(agenda.size()).toBe(0);
  });

  it("when it is that there is nothing to do", () => {
    const agenda = createAgenda();
    agenda.set("report", 100);
    agenda.delete("report");
    agenda.delete("never seen");
    expect(agenda.due(1_000)).toEqual([]);
  });

  it("after it was due", () => {
    const agenda = createAgenda();
    agenda.set("report", 100);
    agenda.due(100);
    agenda.set("report", 100);
    expect(agenda.due(100)).toEqual(["report"]);
  });
});

it("an instant that is not a number is refused, and holds up no other key", () => {
  const agenda = createAgenda();
  agenda.set("team/report", 1_000);
  expect(() => agenda.set("team/broken", Number.NaN)).toThrow(RangeError);
  expect(agenda.due(1_000)).toEqual(["team/report"]);
});

it("does what a plain list would, whatever the order of calls", () => {
  const key = fc.integer({ min: 0, max: 30 }).map((n) => `k${n}`);
  const time = fc.integer({ min: 0, max: 50 });
  const call = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("set" as const), key, time }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("delete" as const), key, time }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("due" as const), key, time }) },
  );
  fc.assert(
    // Long enough for leftovers to be swept out.
    fc.property(fc.array(call, { maxLength: 400, size: "max" }), (calls) => {
      const agenda = createAgenda();
      const plain = new Map<string, number>();
      for (const { do: what, key, time } of calls) {
        if (what === "set") {
          agenda.set(key, time);
          plain.set(key, time);
        } else if (what === "delete") {
          agenda.delete(key);
          plain.delete(key);
        } else {
          const due = [...plain].filter(([, at]) => at <= time);
          for (const [name] of due) plain.delete(name);
          const given = agenda.due(time);
          expect(given.toSorted()).toEqual(due.map(([name]) => name).toSorted());
          const times = given.map((name) => due.find(([k]) => k === name)?.[1] ?? -1);
          expect(times).toEqual(times.toSorted((a, b) => a - b));
        }
        expect(agenda.size()).toBe(plain.size);
      }
    }),
  );
});
