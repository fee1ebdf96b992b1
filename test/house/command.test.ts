import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterAll, describe, expect, it } from "vitest";
import { ROOT, runCommand } from "../../tools/ci/command.ts";

const node = (script: string): string[] => [process.execPath, "-e", script];

/** A zombie is gone: who started it has not asked yet, or nobody will. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function until(fact: () => boolean): Promise<void> {
  while (!fact()) await new Promise((resolve) => setTimeout(resolve, 10));
}

const FOREVER = "setInterval(() => {}, 1000)";
/** Starts a process that would live on, writes its pid into a file and goes on with `then`. */
const withGrandchild = (file: string, then: string): string =>
  `const c = require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(FOREVER)}]);` +
  `require("fs").writeFileSync(${JSON.stringify(file)}, String(c.pid)); ${then}`;

const folder = mkdtempSync(path.join(tmpdir(), "lockedcron-command-"));
afterAll(() => rmSync(folder, { recursive: true }));

function pidIn(file: string): number {
  return existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
}

describe("a command", () => {
  it("tells its exit code and what it printed", async () => {
    const script = 'console.log("out"); console.error("err"); process.exitCode = 3';
    const ended = await runCommand(node(script), { quiet: true });
    expect(ended).toMatchObject({ code: 3, timedOut: false });
    expect(ended.output).toContain("out");
    expect(ended.output).toContain("err");
  });

  it("that does not exist ends with 127 and says so", async () => {
    const ended = await runCommand(["no-such-program-here"], { quiet: true });
    expect(ended).toMatchObject({ code: 127, output: expect.stringContaining("ENOENT") as string });
  });

  it("uses the Node of the project", async () => {
    const ended = await runCommand(["node", "-p", "process.version"], { quiet: true });
    expect(ended.output.trim()).toBe(process.version);
  });

  it("gets no input to wait for", async () => {
    const script = 'process.stdin.on("end", () => console.log("end")).resume()';
    expect((await runCommand(node(script), { quiet: true })).output).toBe("end\n");
  });

  it("leaves nothing behind when it ends", async () => {
    const file = path.join(folder, "left");
    await runCommand(node(withGrandchild(file, "process.exit(0)")), { quiet: true });
    const pid = pidIn(file);
    expect(pid).toBeGreaterThan(1);
    await until(() => !isAlive(pid));
  });

  it("is stopped at its limit, with all it started", async () => {
    const file = path.join(folder, "stopped");
    const limit = new AbortController();
    const script = node(withGrandchild(file, FOREVER));
    const running = runCommand(script, { quiet: true, limit: limit.signal });
    await until(() => pidIn(file) > 1);
    expect(isAlive(pidIn(file))).toBe(true);
    limit.abort();
    expect((await running).timedOut).toBe(true);
    await until(() => !isAlive(pidIn(file)));
  });

  it("gets the signal that its caller got, and may end in order", async () => {
    const orderly = 'process.on("SIGINT", () => { console.log("bye"); process.exit(7); });';
    const caller = [
      `import { runCommand, wasInterrupted } from "${ROOT}/tools/ci/command.ts";`,
      `const ended = await runCommand(["node", "-e", ${JSON.stringify(`${orderly} console.log("up"); ${FOREVER}`)}]);`,
      "console.log(ended.code, wasInterrupted());",
    ].join("\n");
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", caller], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const lines: string[] = [];
    for await (const line of createInterface(child.stdout)) {
      lines.push(line);
      if (line === "up") child.kill("SIGINT");
    }
    if (child.exitCode === null) await once(child, "exit");
    expect(lines).toEqual(["up", "bye", "7 true"]);
  });
});
