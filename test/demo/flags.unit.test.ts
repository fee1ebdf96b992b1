import { expect, it } from "vitest";
import { UsageError } from "../cluster/errors.ts";
import { parseFlags } from "./flags.ts";

const PERSON = { root: false, tty: true };

it.each([
  ["as root pods really run", [], { root: true, tty: true }, { mode: "nodes", plain: false }],
  ["without root they are simulated", [], PERSON, { mode: "simulated", short: false, keep: false }],
  ["or there are none", ["--control-plane"], PERSON, { mode: "control-plane" }],
  ["root may ask for it, too", ["--simulated"], { root: true, tty: true }, { mode: "simulated" }],
  ["what is no terminal gets plain lines", [], { root: true, tty: false }, { plain: true }],
  ["a terminal when asked for", ["--plain", "--short"], PERSON, { plain: true, short: true }],
])("%s", (_, argv, where, options) => {
  expect(parseFlags(argv, where)).toMatchObject({ kind: "run", options });
});

it("knows its other commands", () => {
  expect(parseFlags(["--down"], PERSON)).toEqual({ kind: "down" });
  expect(parseFlags(["--help"], PERSON)).toMatchObject({ kind: "help" });
  expect(parseFlags(["--background", "--keep"], PERSON)).toMatchObject({ kind: "background" });
});

it.each([
  [
    ["--shrt", "--plain=1", "now"],
    "now: unexpected; --shrt: no such flag; --plain=1: takes no value",
  ],
  [["--simulated", "--control-plane"], "--simulated or --control-plane, not both"],
  [["--down", "--short"], "--down goes alone"],
  [["-x"], "-x: no such flag"],
])("%s is refused, with every mistake in one message", (argv, message) => {
  expect(() => parseFlags(argv, PERSON)).toThrow(new UsageError(message));
});
