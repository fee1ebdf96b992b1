/** The claim of a run: what makes a tick, or what somebody asked for, decided. */
import { appendDecisions, type Decision, type Ledger, type Run } from "./ledger.ts";
import type { Manual } from "./manual.ts";

/** Ids of triggers that are remembered; the annotation holds one at a time. */
const MAX_TRIGGERS = 20;

export interface Claim {
  tick: number;
  runId: string;
  jobName: string;
  lockKey: string;
  lockValue: string;
  by: string;
  why: string;
  decisions: Decision[];
  missed: number;
  /** How the run is locked; with mutexes (`waiting`) it gets no attempt before they are held. */
  locks?: Pick<Run, "lock" | "waiting" | "lockedAt">;
  manual?: Manual | undefined;
}

/** THE COMMIT POINT: adds the run with its first attempt, marks it decided, gives the next token. */
export function claim(ledger: Ledger, c: Claim): Ledger {
  const token = ledger.token + 1;
  const run: Run = {
    tick: c.tick,
    runId: c.runId,
    jobName: c.jobName,
    token,
    lockKey: c.lockKey,
    lockValue: c.lockValue,
    attempts: c.locks?.waiting === undefined ? [{ n: 1, by: c.by, settled: false }] : [],
    why: c.why,
    ...c.locks,
    ...(c.manual === undefined ? {} : { manual: c.manual }),
  };
  return {
    ...ledger,
    ...(c.manual === undefined ? decided(ledger, c.tick) : carriedOut(ledger, c.manual, c.tick)),
    token,
    runs: [...ledger.runs, run],
    missed: ledger.missed + c.missed,
    decisions: appendDecisions(ledger.decisions, c.decisions),
  };
}

function decided({ lastTick }: Ledger, tick: number): Pick<Ledger, "lastTick"> {
  if (tick <= lastTick) throw new Error(`tick ${tick} is decided already (last is ${lastTick})`);
  return { lastTick: tick };
}

/** What somebody asks for is done once, and moves no tick of the schedule. */
function carriedOut(
  { triggers = [], backfill }: Ledger,
  { id, kind }: Manual,
  tick: number,
): Pick<Ledger, "triggers"> | Pick<Ledger, "backfill"> {
  if (kind === "trigger") {
    if (triggers.includes(id)) throw new Error(`trigger ${id} is carried out already`);
    return { triggers: [...triggers, id].slice(-MAX_TRIGGERS) };
  }
  if (backfill?.id === id && tick <= backfill.cursor) {
    throw new Error(`tick ${tick} of backfill ${id} is launched already`);
  }
  return { backfill: { id, cursor: tick } };
}
