/** The terminal: lines that stay, and below them a part that is drawn anew. */
import { styleText } from "node:util";

export interface Terminal {
  write(text: string): void;
  /** Redrawing and colours make sense. */
  readonly isTTY: boolean;
  size(): { readonly columns: number; readonly rows: number };
}

export type Style = Parameters<typeof styleText>[0];

export interface Screen {
  /** Whether `draw` shows anything. */
  readonly animated: boolean;
  /** Characters per line; Infinity where lines may have any length. */
  width(): number;
  paint(style: Style, text: string): string;
  /** Lines that stay. */
  print(...lines: readonly string[]): void;
  /** Replaces the part at the bottom. */
  draw(lines: readonly string[]): void;
}

const CLEAR_BELOW = "\u001b[0J";
/** The terminal shows what lies between these at once, without flicker; others ignore them. */
const BEGIN = "\u001b[?2026h";
const END = "\u001b[?2026l";
// oxlint-disable-next-line no-control-regex -- it is what escape sequences begin with
const ESCAPE = /(\u001b\[[\d;]*m)/;

export function createScreen(
  terminal: Terminal,
  options: { readonly plain: boolean; readonly colour: boolean },
): Screen {
  const animated = terminal.isTTY && !options.plain;
  const colour = terminal.isTTY && options.colour;
  let drawn = 0;
  let below: readonly string[] = [];

  const width = (): number => (terminal.isTTY ? terminal.size().columns : Infinity);
  const up = (): string => (drawn > 0 ? `\u001b[${drawn}A\r` : "\r");

  function render(above: readonly string[], next: readonly string[]): void {
    // What does not fit would scroll away, and could not be reached to be drawn over.
    const shown = next.slice(0, terminal.size().rows - 1).map((line) => fit(line, width() - 1));
    const text = [...above, ...shown].map((line) => `${line}\n`).join("");
    terminal.write(`${BEGIN}${up()}${CLEAR_BELOW}${text}${END}`);
    drawn = shown.length;
    below = next;
  }

  return {
    animated,
    width,
    paint: (style, text) => (colour ? styleText(style, text, { validateStream: false }) : text),
    print(...lines) {
      if (animated) render(lines, below);
      else terminal.write(lines.map((line) => `${line}\n`).join(""));
    },
    draw(lines) {
      if (animated) render([], lines);
    },
  };
}

/** Cuts a line to so many visible characters; escape sequences have none. */
export function fit(line: string, width: number): string {
  let left = width;
  let cut = false;
  const parts = line.split(ESCAPE).map((part) => {
    if (ESCAPE.test(part)) return part;
    if (part.length > left) {
      cut ||= true;
      const kept = left > 0 ? `${part.slice(0, left - 1)}…` : "";
      left = 0;
      return kept;
    }
    left -= part.length;
    return part;
  });
  return cut ? parts.join("") : line;
}

/** Breaks a text between words into lines of at most so many characters; `indent` begins each line. */
export function wrap(text: string, width: number, indent = ""): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(" ")) {
    const longer = line === indent ? indent + word : `${line} ${word}`;
    if (longer.length <= width || line === indent) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = indent + word;
  }
  return [...lines, line];
}
