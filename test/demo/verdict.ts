/** The end: what became of all due ticks, in a few lines, and whether that is good. */
import { accountOf, type Account } from "./account.ts";
import type { Board } from "./board.ts";
import type { Stage } from "./stage.ts";
import { clock, duration, type Paint } from "./table.ts";

export interface Verdict {
  readonly good: boolean;
  readonly accounts: readonly Account[];
  /** Rules of the launch protocol that were broken, one line each. */
  readonly violations: readonly string[];
  /** ms from each tick to its Job. */
  readonly latencies: readonly number[];
}

/** @param until ticks up to here must be accounted for, ms */
export function judge(stage: Stage, board: Board, until: number): Verdict {
  const { witness } = stage;
  const accounts = stage.samples.map(({ name, schedule }) => {
    const history = witness.history(name);
    const anchor = history[0]?.ledger.anchor ?? until;
    return accountOf({ name, schedule, anchor, until, history, jobs: witness.jobs(name) });
  });
  const violations = [
    ...witness.violations(),
    ...stage.samples
      .filter(({ name }) => witness.history(name).length === 0)
      .map(({ name }) => `${name}: no replica has ever made its ledger`),
  ];
  const latencies = board.rows().flatMap(({ latencyMs }) => latencyMs ?? []);
  const good =
    violations.length === 0 &&
    accounts.every(
      ({ due, duplicates, unexplained, strays }) =>
        due.length > 0 && duplicates === 0 && unexplained.length === 0 && strays.length === 0,
    );
  return { good, accounts, violations, latencies };
}

export function verdictLines(verdict: Verdict, paint: Paint): string[] {
  const { accounts, violations, good } = verdict;
  const sum = (of: (account: Account) => number): number =>
    accounts.reduce((total, account) => total + of(account), 0);
  const duplicates = sum((account) => account.duplicates);
  const unexplained = sum((account) => account.unexplained.length);
  const cells = (...texts: (string | number)[]): string =>
    texts
      .map((text, i) => (i === 0 ? String(text).padEnd(19) : String(text).padStart(12)))
      .join("");
  return [
    paint("dim", cells("", "due", "launched", "missed", "duplicates")),
    ...accounts.map(({ name, due, launched, missed, duplicates, unexplained }) =>
      cells(name, due.length, launched, missed.length + unexplained.length, duplicates),
    ),
    ...accounts.flatMap(({ name, missed, unexplained, strays }) => [
      ...missed.map(
        ({ tick, reason, message }) => `missed ${name} ${clock(tick)}: ${reason}, ${message}`,
      ),
      ...unexplained.map((tick) =>
        paint("red", `missed ${name} ${clock(tick)}: no Job, and no reason recorded`),
      ),
      ...strays.map((job) =>
        paint("red", `${job}: a Job for an instant that is no tick of ${name}`),
      ),
    ]),
    ...violations.map((line) => paint("red", line)),
    latencyLine(verdict.latencies),
    "",
    good
      ? paint(
          ["bold", "green"],
          `duplicates 0, unexplained misses 0: every due tick ran once, or says why not`,
        )
      : paint(
          ["bold", "red"],
          `duplicates ${duplicates}, unexplained misses ${unexplained}: this must not be`,
        ),
  ];
}

function latencyLine(latencies: readonly number[]): string {
  const sorted = latencies.toSorted((a, b) => a - b);
  const [median, slowest] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  if (median === undefined || slowest === undefined) return "no Job was created";
  return `Jobs created after their tick: half of them within ${duration(median)}, the slowest ${duration(slowest)}`;
}
