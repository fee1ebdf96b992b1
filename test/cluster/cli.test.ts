import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { main } from "./cli.ts";
import { openCluster } from "./cluster.ts";
import { isAlive } from "./proc.ts";
import { mustIdentify, useOwnRunDir } from "./testing.ts";

useOwnRunDir();

/** Runs a command line; what it printed, and how it ended. */
async function say(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const out = vi.spyOn(console, "log").mockReturnValue();
  const err = vi.spyOn(console, "error").mockReturnValue();
  const text = (spy: typeof out): string => spy.mock.calls.map((call) => call.join(" ")).join("\n");
  const code = await main(argv);
  const said = { code, out: text(out), err: text(err) };
  vi.restoreAllMocks();
  return said;
}

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test.each([
  [[], /no command: say up, down, status or tools/],
  [["ups"], /ups: no such command/],
  [["up", "--frob"], /Unknown option '--frob'/],
  [["up", "--mode", "foo"], /--mode foo: must be one of control-plane, nodes/],
  [["up", "--mode", "nodes", "--nodes", "0"], /--nodes 0: must be a whole number of 1 or more/],
  [["up", "--mode", "nodes", "--nodes", "51"], /--nodes 51: must be a whole number from 1 to 50/],
  [["up", "--mode", "control-plane", "--nodes", "2"], /--nodes 2: mode control-plane has none/],
  [["up", "--name", "A_b"], /--name A_b: must be 1 to 20 lower-case/],
  [["up", "--mode", "nodes", "--kubeconfig", "x"], /--kubeconfig goes with --mode existing/],
  [["up", "--all", "x"], /up takes no --all; x: unexpected/],
  [["down", "--name", "a", "--all"], /--name or --all, not both/],
  [["tools", "frob"], /frob: no such tool; there are etcd/],
])("a wrong command line is one message and exit code 2: %j", async (argv, message) => {
  const { code, out, err } = await say(...argv);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err.split("\n")[0]).toMatch(message);
});

test("up leaves a cluster that stays, can be said twice, and down ends it", async () => {
  const up = await say("up", "--mode", "control-plane", "--name", "stay");
  expect(up).toMatchObject({ code: 0, out: expect.stringContaining("export KUBECONFIG=") });
  const cluster = await openCluster("stay");
  const server = mustIdentify(cluster.apiServer.pid);
  expect((await say("up", "--mode", "control-plane", "--name", "stay")).out).toMatch(/up already/);
  expect(await say("up", "--mode", "simulated", "--name", "stay")).toMatchObject({
    code: 1,
    err: expect.stringContaining("exists already, in mode control-plane"),
  });
  const status = await say("status");
  expect(status.out).toMatch(/stay {2}mode control-plane, .* stays until cluster-down/);
  expect(status.out).toContain(`kube-apiserver            ${server.pid}`);
  expect(await say("down", "--name", "stay")).toMatchObject({
    code: 0,
    out: "cluster stay is down",
  });
  expect(isAlive(server)).toBe(false);
  expect((await say("down", "--name", "stay")).out).toBe("no cluster stay");
});

describe("binaries cannot be built", () => {
  async function buildWith(go: string | undefined): Promise<{ code: number; err: string }> {
    const dir = await mkdtemp(join(tmpdir(), "lc-"));
    try {
      if (go !== undefined) {
        await writeFile(join(dir, "go"), go);
        await chmod(join(dir, "go"), 0o755);
      }
      vi.stubEnv("LOCKEDCRON_CACHE", join(dir, "cache"));
      vi.stubEnv("PATH", dir);
      return await say("tools", "etcd");
    } finally {
      await rm(dir, { recursive: true });
    }
  }

  test("without Go: the way to it is named", async () => {
    const { code, err } = await buildWith(undefined);
    expect(code).toBe(1);
    expect(err).toMatch(/go is not installed\.\nInstall Go 1\.26 or newer/);
  });

  test("with an old Go: both versions are named", async () => {
    const { code, err } = await buildWith("#!/bin/sh\necho go1.19.8\n");
    expect(code).toBe(1);
    expect(err).toMatch(/built with Go 1\.26, but go1\.19\.8 is installed\.\nInstall Go/);
  });
});
