import { type Clock, systemClock } from "../clock.ts";
import { createAlarms } from "./hold/alarms.ts";
import { createCounter, type FencingSource } from "./hold/fencing.ts";
import { createLocker, type Locker } from "./hold/locker.ts";
import { healthOf, refuseMisconfigured } from "./health.ts";
import { createMembership } from "./membership.ts";
import { createNode, type LockNode } from "./node/node.ts";
import {
  checkEntry,
  checkKey,
  nodeCountWarnings,
  type NodeConfig,
  parseLists,
  parseMaxLease,
  parseNodes,
  parseTiming,
} from "./options.ts";
import { acquireOnce } from "./ops/acquire.ts";
import { createRenewals } from "./ops/extend.ts";
import { forceReleaseOnce, inspectOnce, releaseOnce } from "./ops/release.ts";
import { quorumOf } from "./quorum.ts";
import type {
  AcquireResult,
  ExtendResult,
  Inspection,
  LockEntry,
  LockHealth,
  LockWarning,
  QuorumLockOptions,
  ReleaseResult,
} from "./types.ts";

/**
 * A lock on a majority of independent Redis masters (Redlock,
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). It decides who may try; it is no fence:
 * an effect that must not happen twice needs a check of its own at the place where it happens.
 *
 * A value should be unique to the attempt (an id and a nonce). Whoever knows it may renew and release by it.
 * Methods reject only for wrong arguments (LockConfigError), never for what nodes do.
 */
export interface QuorumLock extends Locker {
  /** Names of the nodes, in the order of the configuration and of every `perNode`. */
  readonly nodes: readonly string[];
  readonly quorum: number;
  readonly warnings: readonly LockWarning[];
  /** One try. Our own value that is there already counts as a yes, and lives for `leaseMs` from now. */
  tryAcquire(key: string, value: string, leaseMs: number): Promise<AcquireResult>;
  /** Renews by value. Nodes that lost it get it back in the background, and do not count this time (R5). */
  extend(key: string, value: string, leaseMs: number): Promise<ExtendResult>;
  /** As `extend`, in one round trip per node; results in the order of the entries. */
  extendMany(entries: readonly LockEntry[]): Promise<ExtendResult[]>;
  /** `leaseMs`: how long the key may live at most; bounds the background work for nodes that are away. */
  release(key: string, value: string, leaseMs?: number): Promise<ReleaseResult>;
  inspect(key: string): Promise<Inspection>;
  /** For administrators: takes the key from whoever has it. */
  forceRelease(key: string): Promise<ReleaseResult>;
  /** Fencing tokens from a counter on the nodes themselves; best effort (docs/lock.md). */
  counter(prefix?: string): FencingSource;
  health(): LockHealth;
  /** Called after each change of a node. @returns the function that ends it */
  onHealth(listener: (health: LockHealth) => void): () => void;
  /** Resolves when a majority is up or `timeoutMs` is over; the health tells which. */
  ready(timeoutMs?: number): Promise<LockHealth>;
  /**
   * For the start of a program: looks at every node once, at most two seconds with the default time-outs, and refuses what
   * no waiting mends. A node that is merely away is no error. @throws LockConfigError BadNode
   */
  check(): Promise<LockHealth>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const DEFAULT_RELEASE_BOUND_MS = 60_000;
const DEFAULT_READY_MS = 2_000;

/** Connects in the background. @throws LockConfigError for a configuration that cannot work */
export function createQuorumLock(options: QuorumLockOptions): QuorumLock {
  const configs = parseNodes(options.nodes);
  const timing = parseTiming(options);
  const clock: Clock = options.clock ?? systemClock;
  const observer = options.observer ?? {};
  const warnings = nodeCountWarnings(configs.length);
  const listeners = new Set<(health: LockHealth) => void>();
  const renewals = createRenewals();
  const alarms = createAlarms();

  let maxLeaseMs = parseMaxLease(options);
  const used = (leaseMs: number): void => {
    maxLeaseMs = Math.max(maxLeaseMs, leaseMs);
  };

  const lists = parseLists(options, configs);
  const membership = createMembership({
    ...lists,
    maxLeaseMs: () => maxLeaseMs,
    onForce: () => {
      for (const node of [...nodes, ...retiring]) node.enlistAgain();
    },
  });
  const nodes: readonly LockNode[] = configs.map(connectTo);
  /** Only in the list before: they are told that it is retired, and asked nothing else. */
  const retiring: readonly LockNode[] = lists.retiring.map(connectTo);

  function connectTo(config: NodeConfig): LockNode {
    return createNode(config, {
      ...timing,
      clock,
      random: options.random ?? Math.random,
      clientName: options.clientName ?? "lockedcron",
      probeKey: options.probeKey ?? "lockedcron:probe",
      maxLeaseMs: () => maxLeaseMs,
      maxLeaseGiven: options.maxLeaseMs !== undefined,
      twinOf: (runId) => twinOf(config.name, runId),
      membership,
      trustNewList: options.trustNewList ?? false,
      onChange,
      onConnected: () => {
        for (const node of nodes) node.recheck();
      },
      onRtt: (node, rttMs) => observer.nodeReply?.({ node, rttMs }),
    });
  }
  for (const warning of warnings) observer.warning?.(warning);

  /** The node before this one in the list that is the same process: one process has one vote. */
  function twinOf(name: string, runId: string): string | undefined {
    for (const node of nodes) {
      if (node.name === name) return undefined;
      if (node.health().facts?.runId === runId) return node.name;
    }
    return undefined;
  }

  function onChange(): void {
    const health = healthOf(nodes);
    observer.healthChanged?.(health);
    for (const listener of listeners) listener(health);
  }

  // Nothing can be said of a node before it was tried once; without this the first call after the start always fails.
  let starting: Promise<unknown> | null = Promise.all(nodes.map(({ tried }) => tried));
  void starting.then(() => {
    starting = null;
  });

  async function started(): Promise<void> {
    if (starting !== null) await ready(timing.nodeTimeoutMs * 2);
  }

  async function ready(timeoutMs = DEFAULT_READY_MS): Promise<LockHealth> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = () => healthOf(nodes).quorum && resolve();
    const timer = setTimeout(resolve, timeoutMs);
    listeners.add(check);
    check();
    await promise;
    listeners.delete(check);
    clearTimeout(timer);
    return healthOf(nodes);
  }

  async function check(): Promise<LockHealth> {
    await Promise.all(nodes.map(({ tried }) => tried));
    const health = healthOf(nodes);
    refuseMisconfigured(health);
    return health;
  }

  async function extend(key: string, value: string, leaseMs: number): Promise<ExtendResult> {
    checkEntry(key, value, leaseMs);
    used(leaseMs);
    if (starting !== null) await started();
    const since = clock.monotonic();
    return report("extend", since, await renewals.extend(nodes, clock, { key, value, leaseMs }));
  }

  async function close(): Promise<void> {
    membership.close();
    alarms.close();
    await Promise.all([...nodes, ...retiring].map((node) => node.close()));
    listeners.clear();
  }

  function report<R extends AcquireResult | ExtendResult | ReleaseResult>(
    operation: "acquire" | "extend" | "release",
    since: number,
    result: R,
  ): R {
    if (observer.attempt === undefined) return result;
    observer.attempt({
      operation,
      outcome: result.outcome,
      durationMs: clock.monotonic() - since,
      perNode: result.perNode,
    });
    return result;
  }

  const port = {
    async tryAcquire(key: string, value: string, leaseMs: number): Promise<AcquireResult> {
      checkEntry(key, value, leaseMs);
      used(leaseMs);
      if (starting !== null) await started();
      const since = clock.monotonic();
      return report("acquire", since, await acquireOnce(nodes, clock, { key, value, leaseMs }));
    },
    async extendMany(entries: readonly LockEntry[]): Promise<ExtendResult[]> {
      for (const { key, value, leaseMs } of entries) checkEntry(key, value, leaseMs);
      // Submitted in one event-loop turn, they travel as one call per node.
      return Promise.all(entries.map(({ key, value, leaseMs }) => extend(key, value, leaseMs)));
    },
    async release(
      key: string,
      value: string,
      leaseMs = DEFAULT_RELEASE_BOUND_MS,
    ): Promise<ReleaseResult> {
      checkEntry(key, value, leaseMs);
      if (starting !== null) await started();
      const since = clock.monotonic();
      renewals.stopHealing(key, value);
      return report("release", since, await releaseOnce(nodes, { key, value, leaseMs }));
    },
  };

  return {
    nodes: nodes.map(({ name }) => name),
    quorum: quorumOf(nodes.length),
    warnings,
    ...port,
    ...createLocker(port, clock, alarms, options.random ?? Math.random, observer),
    extend,
    async inspect(key) {
      checkKey(key);
      if (starting !== null) await started();
      return inspectOnce(nodes, key);
    },
    async forceRelease(key) {
      checkKey(key);
      if (starting !== null) await started();
      return forceReleaseOnce(nodes, key);
    },
    counter: (prefix = "fence:") => createCounter(nodes, prefix, timing.nodeTimeoutMs),
    health: () => healthOf(nodes),
    onHealth(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ready,
    check,
    close,
    [Symbol.asyncDispose]: close,
  };
}
