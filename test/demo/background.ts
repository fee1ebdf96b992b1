/**
 * `--keep`: the demo runs in a process of its own, in the background from the start, and the one at the terminal only
 * shows what it says. After the summary the latter ends; everything else goes on until `--down`. Should the terminal go
 * away before, the demo takes everything down as it does for Ctrl-C.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { DemoOptions } from "./flags.ts";
import { codeOf, Interrupted, INTERRUPTS, onInterrupt } from "./interrupt.ts";
import { checkNoneKept, howTo, KEPT } from "./kept.ts";
import { runDemo } from "./run.ts";
import type { Terminal } from "./screen.ts";

/** To the background: how large the terminal is. */
interface Size {
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows: number;
}

/** From the background, in order. */
type Said = { readonly write: string } | { readonly ended: number };

/** The process at the terminal. */
export async function runInBackground(
  argv: readonly string[],
  terminal: Terminal,
): Promise<number> {
  await checkNoneKept();
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "main.ts"), "--background", ...argv],
    // A session of its own: Ctrl-C reaches it only through us, and the terminal's end not at all.
    { detached: true, stdio: ["ignore", "ignore", "pipe", "ipc"] },
  );
  child.stderr?.pipe(process.stderr);
  const sendSize = (): void => {
    if (child.connected) child.send({ isTTY: terminal.isTTY, ...terminal.size() } satisfies Size);
  };
  process.stdout.on("resize", sendSize);
  passOnSignals(child);
  sendSize();
  return new Promise((resolve) => {
    child.on("message", (said: Said) => {
      if ("write" in said) terminal.write(said.write);
      else resolve(said.ended);
    });
    child.on("exit", (code, signal) => resolve(signal === null ? (code ?? 1) : codeOf(signal)));
  });
}

function passOnSignals(child: ChildProcess): void {
  let asked = false;
  for (const name of INTERRUPTS) {
    process.on(name, () => {
      child.kill(asked ? "SIGKILL" : name);
      asked = true;
    });
  }
}

/** The process in the background. @returns the exit code, when it is told to end */
export async function stayInBackground(options: DemoOptions): Promise<number> {
  const say = (said: Said): void => void process.send?.(said);
  const [first] = (await once(process, "message")) as [Size];
  let size = first;
  process.on("message", (next: Size) => (size = next));
  const { signal, stop } = onInterrupt();
  const orphaned = (): void => stop(new Interrupted("SIGHUP"));
  process.once("disconnect", orphaned);

  const terminal: Terminal = {
    write: (text) => say({ write: text }),
    isTTY: size.isTTY,
    size: () => size,
  };
  const { code, stage } = await runDemo({ options, terminal, signal, name: KEPT });
  if (stage === undefined) return code;
  await using _ = stage;
  for (const player of stage.players) player.supervise();
  terminal.write(`${howTo(stage).join("\n")}\n`);
  process.off("disconnect", orphaned);
  say({ ended: code });
  if (!signal.aborted) await once(signal, "abort");
  return 0;
}
