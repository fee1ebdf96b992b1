import type { Clock } from "../clock.ts";
import type { AttemptBook } from "./attempts.ts";
import type { Elections } from "./elections.ts";
import type { MutexBook } from "./mutexes.ts";
import type {
  EventSink,
  Jobs,
  Ledgers,
  Locks,
  Members,
  Observer,
  Owners,
  StepHook,
} from "./ports.ts";
import type { StuckLocks } from "./stuck-locks.ts";

/** Everything that the effects of a reconcile may touch. */
export interface Context {
  /** `<replica>/<nonce>`: one per process, never used again. */
  process: string;
  replica: string;
  clock: Clock;
  /** In [0, 1), as Math.random. */
  random: () => number;
  ledgers: Ledgers;
  jobs: Jobs;
  owners: Owners;
  elections: Elections;
  locks: Locks;
  mutexes: MutexBook;
  members: Members;
  attempts: AttemptBook;
  stuckLocks: StuckLocks;
  events: EventSink;
  observe: Observer;
  onStep: StepHook;
  /** Prefix of lock keys; tells clusters that share a Redis apart. */
  lockPrefix: string;
  /** Namespaces whose mutexes may be used from any other. */
  sharedMutexNamespaces: readonly string[];
  /** Of an election, ms: grows with the crowd of ticks due at once, since each then takes longer to get its Job. */
  electionLeaseMs(): number;
}

/** How a step ended: decide again on what is there now, or look again later. */
export type StepResult =
  | { next: "decide"; outcome: string }
  | { next: "again"; at: number; outcome: string }
  /** The tick has its Job; what remains has time, so ticks that are due go first. */
  | { next: "followUp"; outcome: string }
  | { next: "retry"; error: unknown; outcome: string };

export const decideAgain = (outcome: string): StepResult => ({ next: "decide", outcome });

export function againIn(context: Context, ms: number, outcome: string): StepResult {
  return { next: "again", at: context.clock.now() + ms, outcome };
}
