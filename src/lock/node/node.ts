import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import type { Membership } from "../membership.ts";
import type { NodeConfig, Timing } from "../options.ts";
import type { NodeHealth, NodeVerdict } from "../types.ts";
import { connectClient, locate, type ReadyClient } from "./client.ts";
import { type Connection, openConnection } from "./connection.ts";
import { createDebts } from "./debts.ts";
import { discard, type Endpoint } from "./dial.ts";
import { clockOffset, isSameServer, parseInfo } from "./facts.ts";
import { enlistWords, newHistory } from "./marker.ts";
import type { NodeOp, Request } from "./op.ts";
import type { NodeError, NodeFailure } from "./reasons.ts";
import { createStanding } from "./standing.ts";

export interface LockNodeOptions extends Timing {
  readonly clock: Clock;
  readonly random: () => number;
  readonly clientName: string;
  readonly probeKey: string;
  readonly maxLeaseMs: () => number;
  readonly maxLeaseGiven: boolean;
  readonly twinOf: (runId: string) => string | undefined;
  readonly membership: Membership;
  readonly trustNewList: boolean;
  readonly onChange: () => void;
  readonly onConnected: () => void;
  readonly onRtt: (node: string, rttMs: number) => void;
}

/** One configured Redis: always connected or about to be again. */
export interface LockNode {
  readonly name: string;
  /** Shared by all attempts: sent or about to be, and no answer yet. */
  readonly pending: NodeVerdict;
  /** What a node that must not vote says instead (R7, R8); null: it votes. */
  bar(): NodeVerdict | null;
  /** Settles exactly once, at once when the node is down. */
  submit(op: NodeOp): void;
  /** Compare-and-delete, in the background for as long as it takes; the verdict is that of the first try. */
  erase(release: Request, answered?: (verdict: NodeVerdict) => void): void;
  /** A command beside the locks. `answered` is called at most once: not when the node is down or the connection ends. */
  call(words: readonly string[], answered: (reply: unknown) => void): void;
  health(): NodeHealth;
  /** Judges its safety again: another node has connected. */
  recheck(): void;
  /** Connects anew when its data do not bear our list in force. */
  enlistAgain(): void;
  /** The first attempt to connect has ended, well or badly. */
  readonly tried: Promise<void>;
  close(): Promise<void>;
}

const FIRST_BACKOFF_MS = 50;
/** Connecting, logging in and checking may take so many node time-outs. */
const CONNECT_TIMEOUTS = 2;

export function createNode(config: NodeConfig, options: LockNodeOptions): LockNode {
  const { name } = config;
  const { clock } = options;
  const closing = new AbortController();
  const dialing = {
    timeoutMs: options.nodeTimeoutMs * CONNECT_TIMEOUTS,
    signal: closing.signal,
  };
  const tried = Promise.withResolvers<void>();
  const { membership } = options;
  const standing = createStanding({
    ...options,
    name,
    waitReplicas: config.waitReplicas,
    listTrouble: membership.trouble,
  });
  const debts = createDebts(send);
  let connection: Connection | undefined;

  function send(op: NodeOp): void {
    if (connection !== undefined) connection.submit(op);
    else op.settle({ node: name, outcome: "unavailable", ...standing.failure() });
  }

  /** One connection's life. Returns why it ended; never throws. */
  async function live(onUp: () => void): Promise<NodeFailure> {
    let ready: ReadyClient;
    try {
      ready = await connectClient(config, { ...options, ...dialing });
      // close() came with the greeting, and found no connection to end.
      if (closing.signal.aborted) {
        discard(ready.client);
        return { reason: "CLOSED", message: "the lock was closed" };
      }
      connection = openConnection(ready, {
        node: name,
        nodeTimeoutMs: options.nodeTimeoutMs,
        heartbeatMs: options.heartbeatMs,
        waitReplicas: config.waitReplicas,
        onSilence: standing.silence,
        onRtt: (ms) => {
          standing.onRtt(ms);
          options.onRtt(name, ms);
        },
      });
      onUp();
      debts.connected(standing.connected(ready));
      options.onConnected();
    } catch (error) {
      const { code, message } = error as NodeError;
      membership.saw(name, undefined);
      return { reason: code, message };
    }
    const watches = [
      setInterval(look, options.factsMs, connection),
      setInterval(reread, options.factsMs, connection, ready),
    ];
    if (config.sentinel !== undefined) {
      watches.push(setInterval(follow, options.heartbeatMs, connection, ready.endpoint));
    }
    if (membership.trouble(name) !== undefined) {
      watches.push(setInterval(reread, options.heartbeatMs, connection, ready));
    }
    look(connection);
    tried.resolve();
    const end = await connection.ended;
    for (const watch of watches) clearInterval(watch);
    connection = undefined;
    debts.orphaned(end.orphans);
    return end;
  }

  /** Leaves a master that Sentinel has replaced, also when it still answers: what it grants now will be lost. */
  function follow(current: Connection, endpoint: Endpoint): void {
    locate(config, dialing).then(
      ({ host, port }) => {
        if (host === endpoint.host && port === endpoint.port) return;
        current.close({ reason: "FAILOVER", message: `Sentinel names ${host}:${port} now` });
      },
      // No sentinel answers: the master that we know is as good as any.
      () => undefined,
    );
  }

  /** The list of nodes that it serves changes, by whoever puts it in force or mends it; and so may we. */
  function reread(current: Connection, { facts, markerKey, marker }: ReadyClient): void {
    const entry = membership.entry(newHistory(membership.isFounding(), facts.runId), true);
    current.call(enlistWords(markerKey, entry), (text) => {
      if ((text ?? "") === marker.text) return;
      current.close({ reason: "NODELIST", message: "its list of nodes has changed" });
    });
  }

  /** Reads INFO and TIME: memory, policy, clock; and whether the server is still what it was. */
  function look(current: Connection): void {
    current.call(["info"], (reply) => {
      try {
        const facts = parseInfo(String(reply));
        const known = standing.health().facts;
        if (known !== undefined && !isSameServer(known, facts)) {
          current.close({ reason: "INCARNATION", message: "it is not the server it was" });
          return;
        }
        current.call(["time"], (time, rttMs) => {
          const clockOffsetMs = clockOffset(time, clock.now(), rttMs) ?? known?.clockOffsetMs;
          standing.learn({ ...facts, ...(clockOffsetMs !== undefined && { clockOffsetMs }) });
        });
      } catch (error) {
        const { code, message } = error as NodeError;
        current.close({ reason: code, message });
      }
    });
  }

  async function stayConnected(): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      const why = await live(() => {
        failures = 0;
      });
      failures += 1;
      if (closing.signal.aborted) return;
      standing.disconnected(why);
      tried.resolve();
      const backoff = Math.min(options.reconnectMaxMs, FIRST_BACKOFF_MS * 2 ** (failures - 1));
      const jittered = backoff * (0.5 + options.random() / 2);
      await sleep(jittered, undefined, closing).catch(() => undefined);
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
    bar: standing.bar,
    submit(op) {
      if (op.request.script === "acquire") debts.cancel(op.request.pair);
      send(op);
    },
    erase: debts.settle,
    call: (words, answered) => connection?.call(words, answered),
    health: standing.health,
    recheck: standing.recheck,
    enlistAgain() {
      if (membership.trouble(name) === undefined) return;
      connection?.close({ reason: "NODELIST", message: "its list of nodes has changed" });
    },
    tried: tried.promise,
    async close() {
      const closed = { reason: "CLOSED", message: "the lock was closed" };
      closing.abort();
      standing.close(closed);
      connection?.close(closed);
      await running;
      tried.resolve();
      debts.close();
    },
  };
}
