/** What people see while it happens: scenes, rows as they settle, and below them how things stand. */
import type { Board, Row } from "./board.ts";
import { wrap, type Screen } from "./screen.ts";
import type { Stage } from "./stage.ts";
import { header, lines, stateLines } from "./table.ts";

export interface Show {
  /** Begins a step, once the rows before it have settled: one sentence. */
  scene(sentence: string): Promise<void>;
  note(sentence: string): void;
  /** Waits for an instant, ms. @throws the signal's reason when it is aborted */
  until(instant: number): Promise<void>;
  /** Waits for a fact, no longer than `patienceMs`; false when it did not come. */
  when(fact: () => boolean, patienceMs: number): Promise<boolean>;
  /** Prints the rows that have settled since, and draws the rest. */
  refresh(): void;
}

const INDENT = "  ";
const LOOK_MS = 100;
/** So long a row may keep later ones from being printed. */
const HOLD_MS = 9_000;
/** A row that takes longer than this to settle appears below the next sentence, ms. */
const SETTLE_MS = 5_000;

export function createShow(o: {
  readonly screen: Screen;
  readonly stage: Stage;
  readonly board: Board;
  readonly signal: AbortSignal;
}): Show {
  const { screen, stage, board, signal } = o;
  const printed = new Set<string>();
  const podless = stage.mode !== "nodes";
  let scenes = 0;
  let headed = false;

  const idOf = ({ sample, tick }: Row): string => `${sample} ${tick}`;
  const text = (row: Row): string[] =>
    lines(row, screen.paint, screen.width() - INDENT.length - 1, podless);
  const head = (): string => INDENT + header(screen.paint, screen.width() - INDENT.length - 1);

  function refresh(): void {
    const rows = board.rows().filter((row) => !printed.has(idOf(row)));
    const settled = inOrder(rows);
    if (settled.length > 0 && !headed) screen.print(head());
    headed ||= settled.length > 0;
    for (const row of settled) {
      printed.add(idOf(row));
      screen.print(...text(row).map((line) => INDENT + line));
    }
    if (!screen.animated) return;
    const now = Date.now();
    const next = stage.samples.map(({ name }) => {
      const at = board.next(name);
      return { sample: name, inMs: at === undefined ? undefined : at - now };
    });
    const state = { players: stage.players, redis: board.redis(), locks: board.locks(), next };
    const open = rows.filter((row) => !settled.includes(row)).flatMap(text);
    screen.draw([
      ...(headed || open.length === 0 ? [] : [head()]),
      ...open.map((line) => INDENT + line),
      "",
      ...stateLines(state, screen.paint).map((line) => INDENT + line),
    ]);
  }

  async function pause(): Promise<void> {
    refresh();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    signal.throwIfAborted();
  }

  async function when(fact: () => boolean, patienceMs: number): Promise<boolean> {
    const end = performance.now() + patienceMs;
    while (!fact()) {
      if (performance.now() > end) return false;
      await pause();
    }
    refresh();
    return true;
  }

  return {
    async scene(sentence) {
      await when(() => board.rows().every((row) => row.settled), SETTLE_MS);
      scenes += 1;
      const text = wrap(`${scenes}. ${sentence}`, screen.width() - 1);
      screen.print("", ...text.map((line) => screen.paint("bold", line)));
      headed = false;
    },
    note(sentence) {
      refresh();
      const text = wrap(`> ${sentence}`, screen.width() - 1, "  ");
      screen.print(...text.map((line) => screen.paint("yellow", line)));
    },
    async until(instant) {
      while (Date.now() < instant) await pause();
      refresh();
    },
    when,
    refresh,
  };
}

/** The rows to be printed: those that have settled, in the order of their ticks where none takes too long. */
function inOrder(rows: readonly Row[]): Row[] {
  const young = Date.now() - HOLD_MS;
  const waited = rows.find((row) => !row.settled && row.tick > young)?.tick ?? Infinity;
  return rows.filter((row) => row.settled && row.tick < waited);
}
