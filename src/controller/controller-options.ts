/** What the controller of one replica is given, and what it can be asked. */
import type { Key } from "../api/names.ts";
import type { Clock, Timers } from "../clock.ts";
import type { LockBackend } from "../domain/conditions.ts";
import type { KubeClient, ReflectorHealth } from "../kube/index.ts";
import type { EventSink, Locks, Observer, StepHook } from "./ports.ts";
import type { Outcome } from "./workqueue.ts";

export interface ControllerOptions {
  client: KubeClient;
  locks: Locks;
  lockBackend(): LockBackend;
  events: EventSink;
  observe: Observer;
  clock: Clock;
  timers: Timers;
  random: () => number;
  /** By how much our clock is proven to be off, ms; see SkewMeter. */
  clockSkewMs(): number;
  replica: string;
  process: string;
  podName: string | undefined;
  namespace: string;
  watchNamespaces: readonly string[];
  lockPrefix: string;
  sharedMutexNamespaces: readonly string[];
  workers: number;
  rankDelayMs: number;
  electionLeaseMs: number;
  takeOverAfterMs: number;
  membershipLeaseSeconds: number;
  /** How long a request may be on its way, ms; see attempts.ts. Only tests make it shorter. */
  requestBoundMs?: number;
  hooks: {
    watchHealth(health: ReflectorHealth, watch: string): void;
    membershipHealth(trouble: string | undefined): void;
    membershipTrouble(what: string, error: unknown): void;
    superseded(by: string): void;
    queueAdd(): void;
    queueOutcome(outcome: Outcome, seconds: number): void;
    queueStuck(key: Key, runMs: number): void;
    onLostFailed(key: Key, error: unknown): void;
    statusFailed(key: Key, error: unknown): void;
  };
  onStep?: StepHook;
}

export interface ControllerStats {
  lockedCronJobs: number;
  queued: number;
  replicas: number;
  locksHeld: number;
  pulseAt: number;
}

export interface Controller {
  /** Begins to watch; ticks are taken once every cache is complete. Resolves then. */
  start(signal: AbortSignal): Promise<void>;
  /** Takes no more ticks, lets what is in flight come to its end, hands the rest over. */
  stop(graceMs: number): Promise<{ unfinished: Key[] }>;
  /** The lock backend changed: every status says so. */
  lockBackendChanged(): void;
  /** A crowd of ticks is being launched: reports can wait. Ends by itself after seconds. */
  busy(): boolean;
  stats(): ControllerStats;
}
