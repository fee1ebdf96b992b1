/** What can be said without a cluster; the rest is in test/chaos/mutexes.test.ts. */
import { expect, test } from "vitest";
import { runCli } from "../../src/cli/run.ts";

async function call(...argv: string[]) {
  let out = "";
  let error = "";
  const code = await runCli(["locks", ...argv], {
    stdin: (async function* () {})(),
    out(text) {
      out += text;
      return Promise.resolve(true);
    },
    error(text) {
      error += text;
    },
    now: Date.now,
    env: {},
  });
  return { code, out, error };
}

test("says how it is used", async () => {
  const { code, out } = await call("--help");
  expect(code).toBe(0);
  expect(out).toMatch(/^Usage: lockedcron locks/);
});

test("a wrong setting is named, exit code 2", async () => {
  const { code, error } = await call("--redis=nonsense://x", "--workers=many");
  expect(code).toBe(2);
  expect(error).toMatch(/^lockedcron locks: /);
  for (const word of ["redis", "workers"]) expect(error).toContain(word);
});

test("a kubeconfig that is not there is named, exit code 2", async () => {
  const { code, out, error } = await call(
    "--redis=redis://127.0.0.1:1",
    "--kubeconfig=/nowhere/kubeconfig",
  );
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(error).toContain("/nowhere/kubeconfig");
});
