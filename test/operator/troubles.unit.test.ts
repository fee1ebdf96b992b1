import { expect, test } from "vitest";
import { createTroubles } from "../../src/operator/troubles.ts";
import { createHealth } from "../../src/telemetry/index.ts";

function stage() {
  const health = createHealth({ pending: ["crd", "rbac"] });
  const look = () =>
    health.report("readyz").map(({ name, ok, reason = "" }) => `${name} ${ok} ${reason}`.trim());
  return { troubles: createTroubles(health), look };
}

test("a check fails as long as one of several parts complains", () => {
  const { troubles, look } = stage();
  troubles.checked("crd", "rbac");
  troubles.set("watch of jobs", "rbac", "jobs are forbidden");
  troubles.set("watch of leases", "rbac", "leases are forbidden");
  expect(look()).toEqual(["crd true", "rbac false jobs are forbidden"]);
  troubles.clear("watch of jobs");
  expect(look()).toEqual(["crd true", "rbac false leases are forbidden"]);
  troubles.clear("watch of leases");
  expect(look()).toEqual(["crd true", "rbac true"]);
});

test("a part whose complaint is another one now lets go of the first check", () => {
  const { troubles, look } = stage();
  troubles.set("watch", "rbac", "forbidden");
  troubles.set("watch", "crd", "not found");
  expect(look()).toEqual(["crd false not found", "rbac true"]);
});

test("a part that never complained passes nothing that was not checked", () => {
  const { troubles, look } = stage();
  troubles.clear("watch");
  expect(look()).toEqual(["crd false not checked yet", "rbac false not checked yet"]);
});
