import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import type { NodeConfig, Timing } from "../options.ts";
import type { NodeHealth, NodeVerdict } from "../types.ts";
import { connectClient } from "./client.ts";
import { type Connection, openConnection } from "./connection.ts";
import { createDebts } from "./debts.ts";
import type { NodeOp } from "./op.ts";
import type { NodeError, NodeFailure } from "./reasons.ts";

export interface LockNodeOptions extends Timing {
  readonly clock: Clock;
  readonly random: () => number;
  readonly clientName: string;
  readonly probeKey: string;
  readonly onChange: () => void;
  readonly onRtt: (node: string, rttMs: number) => void;
}

/** One configured Redis: always connected or about to be again. */
export interface LockNode {
  readonly name: string;
  /** Shared by all attempts: sent or about to be, and no answer yet. */
  readonly pending: NodeVerdict;
  /** Settles exactly once, at once when the node is down. */
  submit(op: NodeOp): void;
  /** Compare-and-delete, in the background for as long as it takes; the verdict is that of the first try. */
  erase(key: string, value: string, leaseMs: number, answered?: (v: NodeVerdict) => void): void;
  health(): NodeHealth;
  /** The first attempt to connect has ended, well or badly. */
  readonly tried: Promise<void>;
  close(): Promise<void>;
}

const FIRST_BACKOFF_MS = 50;
/** Connecting, logging in and checking may take so many node time-outs. */
const CONNECT_TIMEOUTS = 2;
const RTT_WEIGHT = 0.2;

export function createNode(config: NodeConfig, options: LockNodeOptions): LockNode {
  const { clock } = options;
  const { name } = config;
  const closing = new AbortController();
  const tried = Promise.withResolvers<void>();
  let connection: Connection | undefined;
  let state: NodeHealth["state"] = "connecting";
  let failure: NodeFailure = { reason: "CONNECTING", message: "not connected yet" };
  let since = clock.now();
  let rttMs: number | undefined;
  let lastRunId: string | undefined;

  function become(next: NodeHealth["state"], why?: NodeFailure): void {
    const same = state === next && (why === undefined || why.reason === failure.reason);
    if (why !== undefined) failure = why;
    if (same) return;
    if (state !== next) since = clock.now();
    state = next;
    options.onChange();
  }

  function onRtt(ms: number): void {
    rttMs = rttMs === undefined ? ms : rttMs + RTT_WEIGHT * (ms - rttMs);
    options.onRtt(name, ms);
  }

  const send = (op: NodeOp): void => {
    if (connection === undefined) op.settle({ node: name, outcome: "unavailable", ...failure });
    else connection.submit(op);
  };
  const debts = createDebts(send);

  /** One connection's life. Returns why it ended; never throws. */
  async function live(onUp: () => void): Promise<NodeFailure> {
    try {
      const ready = await connectClient(config, {
        timeoutMs: options.nodeTimeoutMs * CONNECT_TIMEOUTS,
        clientName: options.clientName,
        probeKey: options.probeKey,
        signal: closing.signal,
      });
      connection = openConnection(ready, config, {
        ...options,
        onRtt,
        onSilence: (silent) =>
          silent ? become("down", { reason: "TIMEOUT", message: "does not answer" }) : become("up"),
      });
    } catch (error) {
      const { code, message } = error as NodeError;
      return { reason: code, message };
    }
    onUp();
    become("up");
    debts.connected(connection.runId === lastRunId);
    lastRunId = connection.runId;
    tried.resolve();
    const end = await connection.ended;
    connection = undefined;
    debts.orphaned(end.orphans);
    return end;
  }

  async function stayConnected(): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      const why = await live(() => {
        failures = 0;
      });
      failures += 1;
      if (closing.signal.aborted) return;
      become("down", { reason: why.reason, message: why.message });
      tried.resolve();
      const backoff = Math.min(options.reconnectMaxMs, FIRST_BACKOFF_MS * 2 ** (failures - 1));
      await sleep(backoff * (0.5 + options.random() / 2), undefined, closing).catch(
        () => undefined,
      );
    }
  }
  const running = stayConnected();

  return {
    name,
    pending: {
      node: name,
      outcome: "unknown",
      reason: "PENDING",
      message: "no answer when the others had decided",
    },
    submit(op) {
      if (op.script === "acquire") debts.cancel(op.key, op.value);
      send(op);
    },
    erase: (key, value, leaseMs, answered) => debts.settle(key, value, leaseMs, answered),
    health: () => ({
      node: name,
      state,
      ...(state !== "up" && failure),
      ...(rttMs !== undefined && { rttMs }),
      since,
    }),
    tried: tried.promise,
    async close() {
      closing.abort();
      failure = { reason: "CLOSED", message: "the lock was closed" };
      connection?.close(failure);
      await running;
      tried.resolve();
      debts.close();
    },
  };
}
