import { describe, expect, it } from "vitest";
import {
  createAttemptBook,
  REQUEST_BOUND_MS,
  type AttemptBook,
} from "../../src/controller/attempts.ts";
import type { Members } from "../../src/controller/ports.ts";
import { anAttempt, aRun } from "../builders/objects.ts";
import { manualTime, type ManualTime } from "./manual-time.ts";

const HOUR = 3_600_000;
const run = aRun();
const { runId } = run;

function aBook(states: Record<string, ReturnType<Members["stateOf"]>> = {}): {
  book: AttemptBook;
  time: ManualTime;
} {
  const time = manualTime();
  const book = createAttemptBook({
    process: "me/1",
    clock: time.clock,
    members: { stateOf: (process) => states[process] ?? "alive" },
  });
  return { book, time };
}

const mine = anAttempt({ by: "me/1" });
const theirs = anAttempt({ by: "other/1" });

describe("an attempt of our own", () => {
  it("that was not sent is ours to send", () => {
    expect(aBook().book.fateOf(run, mine)).toBe("unsent");
  });

  it("is in doubt from the moment before its POST leaves until no request of ours can be on its way", async () => {
    const { book, time } = aBook();
    book.sending(runId, 1);
    expect(book.fateOf(run, mine)).toBe("inDoubt");
    await time.pass(REQUEST_BOUND_MS);
    expect(book.fateOf(run, mine)).toBe("inDoubt");
    await time.pass(1);
    expect(book.fateOf(run, mine)).toBe("past");
  });

  it("is not taken for over by a clock that was set ahead", () => {
    const { book, time } = aBook();
    book.sending(runId, 1);
    time.jump(HOUR);
    expect(book.fateOf(run, mine)).toBe("inDoubt");
  });

  it("that was answered can arrive no more", () => {
    const { book } = aBook();
    book.sending(runId, 1);
    book.answered(runId, 1);
    expect(book.fateOf(run, mine)).toBe("past");
  });

  it("that surely never left may be sent after all", () => {
    const { book } = aBook();
    book.sending(runId, 1);
    book.notSent(runId, 1);
    expect(book.fateOf(run, mine)).toBe("unsent");
  });

  it("is not mixed up with another attempt or another run", () => {
    const { book } = aBook();
    book.sending(runId, 1);
    expect(book.fateOf(run, anAttempt({ n: 2 }))).toBe("unsent");
    expect(book.fateOf(aRun({ runId: "other" }), mine)).toBe("unsent");
  });

  it("is remembered for an hour, so that an old version of the ledger cannot have it sent again", async () => {
    const { book, time } = aBook();
    book.sending(runId, 1);
    book.answered(runId, 1);
    await time.pass(HOUR);
    book.sending("another run", 1);
    expect(book.fateOf(run, mine)).toBe("past");
  });

  it("is not remembered for ever", async () => {
    const { book, time } = aBook();
    book.sending(runId, 1);
    await time.pass(2 * HOUR);
    book.sending("another run", 1);
    expect(book.fateOf(run, mine)).toBe("unsent");
  });
});

describe("an attempt of another process", () => {
  it.each([
    ["may arrive while it lives", "alive", "foreign"],
    ["may arrive while it only shows no life: it may be paused", "silent", "foreign"],
    [
      "may arrive when it has just been proven dead: its request may be on its way",
      "dead",
      "foreign",
    ],
    ["can arrive no more when it has been dead for long enough", "past", "past"],
  ] as const)("%s", (_, state, fate) => {
    expect(aBook({ "other/1": state }).book.fateOf(run, theirs)).toBe(fate);
  });

  it("is not ours because an older process of this replica made it", () => {
    expect(aBook().book.fateOf(run, anAttempt({ by: "me/0" }))).toBe("foreign");
  });
});
