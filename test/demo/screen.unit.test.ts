import { describe, expect, it } from "vitest";
import { createScreen, fit, wrap, type Screen } from "./screen.ts";

/** A terminal that understands what the screen sends: what a person would see on it. */
function emulate(columns = 20, rows = 6) {
  const lines: string[] = [""];
  let row = 0;
  let written = "";
  function take(text: string): void {
    written += text;
    // oxlint-disable-next-line no-control-regex -- it is what escape sequences begin with
    for (const part of text.split(/(\u001b\[[?\d;]*[a-zA-Z]|\n|\r)/)) {
      if (part === "\n") lines[++row] ??= "";
      else if (part.endsWith("A") && part.startsWith("\u001b")) row -= Number(part.slice(2, -1));
      else if (part === "\u001b[0J") lines.splice(row, Infinity, "");
      else if (part !== "\r" && !part.startsWith("\u001b")) lines[row] += part;
    }
  }
  const terminal = { write: take, isTTY: true, size: () => ({ columns, rows }) };
  return { terminal, seen: () => lines, written: () => written };
}

const open = (o: { plain?: boolean; colour?: boolean; columns?: number; rows?: number } = {}) => {
  const { terminal, ...rest } = emulate(o.columns, o.rows);
  const screen: Screen = createScreen(terminal, {
    plain: o.plain ?? false,
    colour: o.colour ?? false,
  });
  return { screen, ...rest };
};

describe("on a terminal", () => {
  it("lines that stay go above what is drawn, which is replaced", () => {
    const { screen, seen } = open();
    screen.draw(["a", "b"]);
    screen.print("one");
    screen.draw(["c"]);
    screen.print("two", "three");
    expect(seen()).toEqual(["one", "two", "three", "c", ""]);
  });

  it("what is drawn leaves when nothing is drawn", () => {
    const { screen, seen } = open();
    screen.print("one");
    screen.draw(["a", "b"]);
    screen.draw([]);
    expect(seen()).toEqual(["one", ""]);
  });

  it("nothing is drawn that would wrap or scroll away: it could not be taken back", () => {
    const { screen, seen } = open({ columns: 6, rows: 3 });
    screen.draw(["123456789", "b", "c", "d"]);
    expect(seen()).toEqual(["1234…", "b", ""]);
  });
});

it("plain: only lines that stay, without a single escape sequence", () => {
  const { screen, written } = open({ plain: true });
  screen.draw(["a"]);
  screen.print("one", "two");
  expect(screen.animated).toBe(false);
  expect(written()).toBe("one\ntwo\n");
});

it("colours only where they are wanted", () => {
  expect(open({ colour: true }).screen.paint("red", "x")).toBe("\u001b[31mx\u001b[39m");
  expect(open().screen.paint("red", "x")).toBe("x");
});

describe("a line", () => {
  it("is cut by what is seen of it", () => {
    expect(fit("\u001b[31mabcdef\u001b[39m", 6)).toBe("\u001b[31mabcdef\u001b[39m");
    expect(fit("\u001b[31mabcdef\u001b[39mgh", 6)).toBe("\u001b[31mabcdef\u001b[39m");
    expect(fit("\u001b[31mabcdef\u001b[39m", 4)).toBe("\u001b[31mabc…\u001b[39m");
  });

  it("is broken between words", () => {
    expect(wrap("one two three", 9, "  ")).toEqual(["  one two", "  three"]);
    expect(wrap("averylongword is not broken", 8)).toEqual(["averylongword", "is not", "broken"]);
    expect(wrap("any length", Infinity)).toEqual(["any length"]);
  });
});
