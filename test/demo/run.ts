/** One run of the demo: set up, play, judge; then take down, or leave standing. */
import { cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBoard, type Board } from "./board.ts";
import type { DemoOptions } from "./flags.ts";
import { createScreen, wrap, type Screen, type Terminal } from "./screen.ts";
import { perform } from "./script.ts";
import { createShow } from "./show.ts";
import { openStage, type Stage, type Step } from "./stage.ts";
import { duration, LEGEND } from "./table.ts";
import { judge, verdictLines } from "./verdict.ts";

export interface Ended {
  /** Exit code. */
  readonly code: 0 | 1;
  /** What was left standing, as `keep` asks for. */
  readonly stage: Stage | undefined;
}

/** How long the ticks that are due at the end may take to end, ms. */
const LAST_TICKS_MS = 60_000;

/**
 * @param name of the cluster; default: chosen
 * @throws the signal's reason when it is aborted, after everything was taken down
 */
export async function runDemo(o: {
  readonly options: DemoOptions;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  readonly name?: string | undefined;
}): Promise<Ended> {
  const { options, signal } = o;
  const colour = process.env["NO_COLOR"] === undefined;
  const screen = createScreen(o.terminal, { plain: options.plain, colour });
  await using stack = new AsyncDisposableStack();
  const begun = performance.now();

  screen.print(screen.paint("bold", "LockedCronJob: each tick runs once, whatever breaks."), "");
  const step = stepper(screen, signal);
  const busy = (line: string): void => screen.print(screen.paint("dim", `    ${line}`));
  const stage = stack.use(
    await openStage({ mode: options.mode, name: o.name, signal, step, busy }),
  );
  let good = false;
  try {
    good = await playAndJudge();
  } finally {
    if (!good && !signal.aborted) {
      screen.draw([]);
      screen.print("", `logs of the replicas and of the cluster: ${await saveLogs(stage)}`);
    }
  }
  if (!options.keep) {
    screen.print("", "taking everything down");
    return { code: good ? 0 : 1, stage: undefined };
  }
  stack.move();
  return { code: good ? 0 : 1, stage };

  async function playAndJudge(): Promise<boolean> {
    await using board = await openBoard(stage);
    const { mode, samples } = stage;
    await step("samples", async () => {
      await stage.applySamples();
      const list = samples.map(({ name, expression }) => `${name} (${expression})`);
      return [undefined, list.join(", ")];
    });
    const show = createShow({ screen, stage, board, signal });
    const legend = LEGEND.flatMap((line) => wrap(line, screen.width() - 1, "  "));
    screen.print("", ...legend.map((line) => screen.paint("dim", line)));
    await perform({ stage, board, show, short: options.short });
    const until = Date.now();
    await show.when(() => isOver(board, until), LAST_TICKS_MS);
    screen.draw([]);
    const verdict = judge(stage, board, until);
    const seconds = duration(performance.now() - begun);
    screen.print(
      "",
      screen.paint("bold", `Summary of ${samples.length} LockedCronJobs, ${seconds}, mode ${mode}`),
      ...verdictLines(verdict, screen.paint).map((line) => `  ${line}`.trimEnd()),
    );
    return verdict.good;
  }
}

function isOver(board: Board, until: number): boolean {
  return board.rows().every((row) => row.tick > until || row.settled);
}

function stepper(screen: Screen, signal: AbortSignal): Step {
  return async (name, run) => {
    signal.throwIfAborted();
    screen.draw([screen.paint("dim", `  … ${name}`)]);
    const begun = performance.now();
    const [value, what] = await run();
    signal.throwIfAborted();
    screen.draw([]);
    const took = screen.paint("dim", `(${duration(performance.now() - begun)})`);
    screen.print(`  ${screen.paint("green", "✓")} ${name.padEnd(9)} ${what} ${took}`);
    return value;
  };
}

async function saveLogs({ dir, players }: Stage): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "lockedcron-demo-logs-"));
  await Promise.all(players.map(({ name, logFile }) => cp(logFile, join(folder, `${name}.log`))));
  await cp(join(dir, "..", "logs"), join(folder, "cluster"), { recursive: true }).catch(() => {});
  return folder;
}
