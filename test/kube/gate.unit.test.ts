import { describe, expect, it } from "vitest";

import { type CallPriority, createGate } from "../../src/kube/gate.ts";

function fill(max: number, calls: CallPriority[]) {
  const gate = createGate(max);
  const started: number[] = [];
  const leave = calls.map((priority, i) => {
    const { ready, leave } = gate.enter(priority);
    if (ready === undefined) started.push(i);
    else void ready.then(() => started.push(i));
    return leave;
  });
  return { gate, started, leave };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("gate", () => {
  it("lets calls in at once while there is room", () => {
    expect(fill(4, ["high", "high", "high", "high"]).started).toEqual([0, 1, 2, 3]);
  });

  it("lets the next in when one leaves, in order of arrival", async () => {
    const { started, leave } = fill(1, ["high", "high", "high"]);
    leave[0]?.();
    await turn();
    expect(started).toEqual([0, 1]);
    leave[1]?.();
    await turn();
    expect(started).toEqual([0, 1, 2]);
  });

  it("lets what launches Jobs go before reports that came earlier", async () => {
    const { started, leave } = fill(1, ["high", "low", "normal", "high"]);
    leave[0]?.();
    await turn();
    expect(started).toEqual([0, 3]);
  });

  it("keeps a quarter of the places free of normal calls, and three quarters of low ones", () => {
    const reports = fill(
      8,
      Array.from({ length: 8 }, () => "low" as const),
    );
    expect(reports.started).toHaveLength(2);
    const normal = fill(
      8,
      Array.from({ length: 8 }, () => "normal" as const),
    );
    expect(normal.started).toHaveLength(6);
    const both = fill(8, ["low", "low", ...Array.from({ length: 8 }, () => "normal" as const)]);
    expect(both.started).toHaveLength(6);
    expect(both.gate.enter("high").ready).toBeUndefined();
    expect(both.gate.enter("high").ready).toBeUndefined();
    expect(both.gate.enter("high").ready).toBeDefined();
  });

  it("forgets who gives up waiting, and gives a place back only once", async () => {
    const { gate, started, leave } = fill(1, ["high", "high", "high"]);
    leave[1]?.();
    leave[0]?.();
    leave[0]?.();
    await turn();
    expect(started).toEqual([0, 2]);
    expect(gate.inFlight()).toBe(1);
    leave[2]?.();
    expect(gate.inFlight()).toBe(0);
  });

  it("has a place for each priority even when it is tiny", () => {
    expect(fill(1, ["low"]).started).toEqual([0]);
  });
});
