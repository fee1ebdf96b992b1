/** What can be said without a cluster; the rest is in test/chaos/removal.ts. */
import { expect, test } from "vitest";
import { call as callCli } from "./call.ts";

const call = (...argv: string[]) => callCli(["release-finalizers", ...argv]);

test("says how it is used", async () => {
  const { code, out } = await call("--help");
  expect(code).toBe(0);
  expect(out).toMatch(/^Usage: lockedcron release-finalizers .*--force.*--dry-run/s);
});

test("names everything that is wrong with the call, exit code 2", async () => {
  const { code, error } = await call("all", "--forced", "--namespace");
  expect(code).toBe(2);
  for (const word of ['"all"', "--forced", "--namespace"]) expect(error).toContain(word);
});

test("a kubeconfig that is not there is one error, exit code 1", async () => {
  const { code, out, error } = await call("--kubeconfig=/nowhere/kubeconfig");
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(error).toMatch(/^lockedcron release-finalizers: .*\/nowhere\/kubeconfig/);
});
