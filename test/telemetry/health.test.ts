import { describe, expect, it } from "vitest";
import { createHealth, HEALTH_CHECKS } from "../../src/telemetry/health.ts";

describe("readiness", () => {
  it("a check that was not made yet does not count as passed", () => {
    const health = createHealth({ pending: HEALTH_CHECKS });
    expect(health.ready()).toBe(false);
    for (const name of HEALTH_CHECKS) health.set(name, { ok: true });
    expect(health.ready()).toBe(true);
  });

  it("one failed check is enough, and it recovers", () => {
    const health = createHealth();
    health.set("a", { ok: true });
    health.set("b", { ok: false, reason: "2 of 5 nodes answer" });
    expect(health.ready()).toBe(false);
    expect(health.report("readyz")).toEqual([
      { name: "a", ok: true },
      { name: "b", ok: false, reason: "2 of 5 nodes answer" },
    ]);
    health.set("b", { ok: true });
    expect(health.ready()).toBe(true);
  });

  it("a check is asked for each time when it is watched", () => {
    const health = createHealth();
    let late = false;
    health.watch("pulse", "readyz", () => ({ ok: !late }));
    expect(health.ready()).toBe(true);
    late = true;
    expect(health.ready()).toBe(false);
    health.remove("pulse");
    expect(health.ready()).toBe(true);
  });

  it("a check that throws has failed with its message", () => {
    const health = createHealth();
    health.watch("odd", "readyz", () => {
      throw new Error("boom");
    });
    expect(health.report("readyz")).toEqual([{ name: "odd", ok: false, reason: "boom" }]);
  });
});

it("liveness and readiness do not mix", () => {
  const health = createHealth();
  health.set("api-server", { ok: false });
  health.watch("pulse", "livez", () => ({ ok: true }));
  expect(health.report("livez")).toEqual([{ name: "pulse", ok: true }]);
  expect(health.ready()).toBe(false);
});
