/** Rows, and what is below them, as text. Knows nothing of terminals but their width. */
import { Reason } from "../../src/api/reasons.ts";
import type { Condition } from "./cast.ts";
import type { LockView, RedisState, Row } from "./board.ts";
import type { Style } from "./screen.ts";

export type Paint = (style: Style, text: string) => string;

/** Together with the gaps and a margin 78 characters: what a terminal has at the least. */
const COLUMNS = [
  ["tick UTC", 8],
  ["lockedcronjob", 17],
  ["winner", 7],
  ["election", 9],
  ["job", 7],
  ["pod", 9],
  ["lock", 7],
] as const;
const GAP = "  ";
/** From here on the pod's log line has room on the same line. */
const WIDE = 107;

/** What the columns mean, for once. */
export const LEGEND = [
  "winner: whose Job it is. election: time to a majority of Redis. job: created so long after its tick.",
  "lock: Redis nodes that bear the run's lock, and its time to live, as last seen before it was freed.",
];

export const clock = (ms: number): string => new Date(ms).toISOString().slice(11, 19);

export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

const cellsOf = (texts: readonly string[]): string[] =>
  COLUMNS.map(([, width], i) => (texts[i] ?? "").slice(0, width).padEnd(width));

export function header(paint: Paint, width: number): string {
  const names = cellsOf(COLUMNS.map(([name]) => name));
  const last = width >= WIDE ? ["the pod's log"] : [];
  return paint("dim", [...names, ...last].join(GAP));
}

/** One line; two where the terminal is too narrow for the log. */
export function lines(row: Row, paint: Paint, width: number, podless: boolean): string[] {
  if (row.missed !== undefined) return [missedLine(row, row.missed, paint)];
  const cells = cellsOf([
    clock(row.tick),
    row.sample,
    row.winner ?? "",
    electionText(row),
    row.latencyMs === undefined ? "" : `+${duration(row.latencyMs)}`,
    row.phase ?? (row.winner === undefined ? "due" : ""),
    lockText(row),
  ]);
  const styles: readonly Style[] = [
    "bold",
    [],
    "cyan",
    [],
    latencyStyle(row),
    phaseStyle(row),
    row.lock?.held === true ? [] : "dim",
  ];
  const first = cells.map((cell, i) => paint(styles[i] ?? [], cell)).join(GAP);
  const says = podless && row.settled ? "(simulated: no log)" : (row.says ?? "");
  const taken = (row.attempt ?? 1) > 1 ? `taken over, attempt ${row.attempt}: ` : "";
  const log = taken + says;
  if (log === "") return [first.trimEnd()];
  if (width < WIDE) return [first.trimEnd(), `${" ".repeat(10)}${tail(log, width - 10)}`];
  const used = cells.join(GAP).length + GAP.length;
  return [first + GAP + tail(log, width - used)];
}

function missedLine(row: Row, missed: NonNullable<Row["missed"]>, paint: Paint): string {
  const [tick = "", sample = ""] = cellsOf([clock(row.tick), row.sample]);
  const what = missed.reason === Reason.Superseded ? "a later tick runs instead" : missed.message;
  return [paint("bold", tick), sample, paint("yellow", `not run: ${missed.reason}, ${what}`)].join(
    GAP,
  );
}

/** The end of a line says more than its beginning: the token, and that it ends. */
function tail(text: string, width: number): string {
  return text.length <= width ? text : `…${text.slice(text.length - Math.max(0, width - 1))}`;
}

function electionText({ election }: Row): string {
  if (election === undefined) return "";
  return election.outcome === "won" ? duration(election.ms) : "no quorum";
}

function lockText({ lock }: Row): string {
  if (lock === undefined) return "";
  return `${lock.votes}/${lock.nodes} ${Math.round(lock.ttlMs / 1_000)}s`;
}

function latencyStyle({ latencyMs = 0 }: Row): Style {
  if (latencyMs < 100) return "green";
  return latencyMs < 1_000 ? "yellow" : "red";
}

function phaseStyle({ phase }: Row): Style {
  if (phase === "Succeeded") return "green";
  return phase === "Failed" ? "red" : "blue";
}

export interface State {
  readonly players: readonly { readonly name: string; readonly condition: Condition }[];
  readonly redis: readonly RedisState[];
  readonly locks: readonly LockView[];
  readonly next: readonly { readonly sample: string; readonly inMs: number | undefined }[];
}

const CONDITION_STYLE: Readonly<Record<Condition, Style>> = {
  up: "green",
  starting: "yellow",
  killed: "red",
  frozen: "cyan",
  "cut off": "magenta",
};

const REDIS_STYLE: Readonly<Record<RedisState, Style>> = {
  up: "green",
  down: "red",
  quarantined: "yellow",
};

/** What is below the rows: who is well, who holds which lock, what comes next. */
export function stateLines({ players, redis, locks, next }: State, paint: Paint): string[] {
  const cast = players.map(
    ({ name, condition }) => `${paint(CONDITION_STYLE[condition], "●")} ${name} ${condition}`,
  );
  const nodes = redis.map(
    (state, i) => `${paint(REDIS_STYLE[state], "●")} ${i + 1}${state === "up" ? "" : ` ${state}`}`,
  );
  return [
    `replicas  ${cast.join("   ")}`,
    `redis     ${nodes.join("   ")}`,
    ...locks.map(
      (view, i) => `${i === 0 ? "locks" : "     "}     ${lockLine(view, redis.length, paint)}`,
    ),
    `next      ${next.map(({ sample, inMs }) => `${sample} ${countdown(inMs)}`).join("   ")}`,
  ];
}

function lockLine(view: LockView, nodes: number, paint: Paint): string {
  const { sample, key, holder, answers } = view;
  if (key === undefined) return `${sample}: ${paint("dim", "no run yet")}`;
  if (answers <= nodes / 2) return `${sample}: ${paint("yellow", "no majority of Redis answers")}`;
  if (holder === null) return `${sample}: ${paint("dim", "free")}`;
  const ttl = (holder.pttlMs / 1_000).toFixed(1);
  return `${holder.value.split("#")[0]} on ${holder.votes} of ${nodes}, ${ttl} s left`;
}

function countdown(inMs: number | undefined): string {
  return inMs === undefined ? "soon" : `in ${Math.max(0, Math.ceil(inMs / 1_000))} s`;
}
