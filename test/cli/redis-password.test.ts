/** What can be said without a cluster; the rest is in test/chart and test/e2e. */
import { expect, test } from "vitest";
import { runCli } from "../../src/cli/run.ts";

async function call(...argv: string[]) {
  let out = "";
  let error = "";
  const code = await runCli(argv, {
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

test("redis-password says how it is used", async () => {
  const { code, out } = await call("redis-password", "--help");
  expect(code).toBe(0);
  expect(out).toMatch(/^Usage: lockedcron redis-password .*--rotation ID/s);
});

test("redis-password names everything that is wrong with the call, exit code 2", async () => {
  const argv = ["redis-password", "all", "--keys=a/b", "--settle-seconds=1m", "--secret=x"];
  const { code, error } = await call(...argv);
  expect(code).toBe(2);
  for (const word of ['"all"', '"a/b"', '"1m"', "--namespace: is missing"]) {
    expect(error).toContain(word);
  }
});

test("redis-password says in one line that it cannot reach the cluster, exit code 1", async () => {
  const argv = ["--namespace=n", "--secret=s", "--kubeconfig=/nowhere/kubeconfig"];
  const { code, out, error } = await call("redis-password", ...argv);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(error).toMatch(/^lockedcron redis-password: .*\/nowhere\/kubeconfig/);
});

test("release-finalizers takes a time to wait in seconds", async () => {
  const { code, error } = await call("release-finalizers", "--wait-seconds=soon");
  expect(code).toBe(2);
  expect(error).toContain('"soon" is not a whole number from 0 to 9999');
});

test("check tells wrong settings of the operator, exit code 2", async () => {
  const { code, error } = await call("check", "--redis=a:6379");
  expect(code).toBe(2);
  expect(error).toMatch(/^lockedcron check: 1 setting is wrong:\n {2}--redis: .*redis:\/\//);
});

test("check goes on after what fails, and says each, exit code 1", async () => {
  const argv = ["check", "--lock-backend=kubernetes", "--context=nowhere", "--kube-timeout-ms=500"];
  const { code, out, error } = await call(...argv);
  expect(code).toBe(1);
  expect(out).toBe("ok    lock: none is needed, the ledger alone elects\n");
  expect(error).toMatch(/^FAIL {2}crd: .*\nFAIL {2}job: .*\n$/);
});
