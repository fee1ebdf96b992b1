import { performance } from "node:perf_hooks";
import { Command, type Redis } from "ioredis";
import type { NodeConfig } from "../options.ts";
import { scripts, type ScriptName } from "../scripts.ts";
import type { NodeVerdict } from "../types.ts";
import { createBatcher } from "./batcher.ts";
import { discard, explain, type ReadyClient } from "./client.ts";
import { argvOf, type NodeOp } from "./op.ts";
import { endsConnection, type NodeFailure, replyReason, safeMessage } from "./reasons.ts";

/** What became of a connection that ended. */
export interface ConnectionEnd extends NodeFailure {
  /** Sets that were sent and never answered: the server may execute them yet (its socket buffer outlives ours). */
  readonly orphans: readonly NodeOp[];
}

export interface Connection {
  readonly runId: string;
  /** Sends with everything else of this event-loop turn. Operations on one key keep their order, always. */
  submit(op: NodeOp): void;
  /** Ends the connection; everything unanswered settles as unknown. */
  close(failure: NodeFailure): void;
  readonly ended: Promise<ConnectionEnd>;
}

interface Batch {
  readonly script: ScriptName | "ping";
  readonly ops: readonly NodeOp[];
  sentAt: number;
  settled: boolean;
}

export interface ConnectionOptions {
  readonly nodeTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly onRtt: (rttMs: number) => void;
  /** The node has let a call time out (true), or has answered again after that (false). */
  readonly onSilence: (silent: boolean) => void;
}

/** Without any answer for so many time-outs a connection is given up. */
const TIMEOUTS_BEFORE_RECONNECT = 3;

export function openConnection(
  ready: ReadyClient,
  config: NodeConfig,
  options: ConnectionOptions,
): Connection {
  const { client, runId } = ready;
  const { nodeTimeoutMs } = options;
  const node = config.name;
  const ended = Promise.withResolvers<ConnectionEnd>();
  // Redis answers in the order of the questions, so the first of the set is the oldest.
  const inflight = new Set<Batch>();
  let timer: NodeJS.Timeout | undefined;
  let lastSent = performance.now();
  // One call timed out and nothing was heard since: asking more would only pile up work for a hung server.
  let silent = false;
  let closed: NodeFailure | undefined;

  const unknown = (failure: NodeFailure): NodeVerdict => ({ node, outcome: "unknown", ...failure });
  const unavailable = (failure: NodeFailure): NodeVerdict => ({
    node,
    outcome: "unavailable",
    ...failure,
  });
  const timedOut: NodeFailure = { reason: "TIMEOUT", message: `no answer in ${nodeTimeoutMs} ms` };

  function settleAll(batch: Batch, verdict: NodeVerdict): void {
    if (batch.settled) return;
    batch.settled = true;
    for (const op of batch.ops) op.settle(verdict);
  }

  function verdictOf(item: unknown): NodeVerdict {
    if (item === 1) return { node, outcome: "yes" };
    if (item === 2) return { node, outcome: "yes", mine: true };
    if (item === 0) return { node, outcome: "absent" };
    const [text, detail] = Array.isArray(item) ? (item as unknown[]) : [];
    if (typeof text === "string" && typeof detail === "number") {
      return { node, outcome: "held", holder: text, pttlMs: detail };
    }
    if (typeof detail === "string") {
      return unavailable({ reason: replyReason(detail), message: safeMessage(detail, []) });
    }
    return unknown({ reason: "PROTOCOL", message: "an answer that no script of ours gives" });
  }

  function send(batch: Batch, by: "evalsha" | "eval"): void {
    batch.sentAt = performance.now();
    lastSent = batch.sentAt;
    inflight.add(batch);
    client.sendCommand(commandOf(batch, by, (error, reply) => onReply(batch, error, reply)));
    timer ??= setTimeout(onTimer, nodeTimeoutMs);
  }

  function onReply(batch: Batch, error: unknown, reply: unknown): void {
    if (closed !== undefined || !inflight.delete(batch)) return;
    if (error === null || error === undefined) {
      hear(false);
      options.onRtt(performance.now() - batch.sentAt);
      const items = Array.isArray(reply) ? (reply as unknown[]) : [];
      const late = batch.settled;
      batch.settled = true;
      for (const [i, op] of batch.ops.entries()) {
        if (late) op.late?.(verdictOf(items[i]));
        else op.settle(verdictOf(items[i]));
      }
      return;
    }
    onError(batch, error);
  }

  function hear(nothing: boolean): void {
    if (silent === nothing) return;
    silent = nothing;
    options.onSilence(nothing);
  }

  function onError(batch: Batch, error: unknown): void {
    const { name, message } = error as Error;
    const failure = explain(error, config);
    if (name !== "ReplyError") {
      // Not an answer: the connection is ending, and its "end" event may come a moment later than this rejection.
      inflight.add(batch);
      close(failure);
      return;
    }
    hear(false);
    if (message.startsWith("NOSCRIPT") && batch.script !== "ping") {
      // SCRIPT FLUSH by somebody. Answers keep their order, so do these second sendings.
      send(batch, "eval");
      return;
    }
    settleAll(batch, unavailable(failure));
    if (endsConnection(failure.reason)) close(failure);
  }

  /** The oldest question decides: after one time-out it is unknown, after three the connection is given up. */
  function onTimer(): void {
    // Two turns of grace: answers that wait behind a stalled event loop are read before anything is called late.
    setImmediate(() => setImmediate(judgeSilence));
  }

  function judgeSilence(): void {
    timer = undefined;
    const oldest = inflight.values().next().value;
    if (closed !== undefined || oldest === undefined) return;
    const now = performance.now();
    const giveUpAt = oldest.sentAt + nodeTimeoutMs * TIMEOUTS_BEFORE_RECONNECT;
    if (now >= giveUpAt) {
      const waited = Math.round(now - oldest.sentAt);
      close({ reason: "TIMEOUT", message: `no answer in ${waited} ms` });
      return;
    }
    let wakeAt = giveUpAt;
    for (const batch of inflight) {
      if (batch.settled) continue;
      if (now < batch.sentAt + nodeTimeoutMs) {
        wakeAt = Math.min(wakeAt, batch.sentAt + nodeTimeoutMs);
        break;
      }
      hear(true);
      settleAll(batch, unknown(timedOut));
    }
    if (closed === undefined) timer ??= setTimeout(onTimer, Math.max(1, wakeAt - now));
  }

  const batcher = createBatcher((script, ops) =>
    send({ script, ops, sentAt: 0, settled: false }, "evalsha"),
  );

  function submit(op: NodeOp): void {
    if (closed !== undefined) op.settle(unavailable(closed));
    // A delete is sent even so: behind the set that it has to undo, on the same connection (FIFO).
    else if (silent && op.script !== "release") op.settle(unavailable(timedOut));
    else batcher.add(op);
  }

  const heartbeat = setInterval(() => {
    if (inflight.size > 0 || performance.now() - lastSent < options.heartbeatMs) return;
    send({ script: "ping", ops: [], sentAt: 0, settled: false }, "evalsha");
  }, options.heartbeatMs);

  function close(failure: NodeFailure): void {
    if (closed !== undefined) return;
    closed = failure;
    clearInterval(heartbeat);
    clearTimeout(timer);
    discard(client);
    const orphans: NodeOp[] = [];
    for (const batch of inflight) {
      if (batch.script === "acquire") orphans.push(...batch.ops);
      settleAll(batch, unknown(failure));
    }
    inflight.clear();
    for (const op of batcher.drain()) op.settle(unavailable(failure));
    ended.resolve({ ...failure, orphans });
  }

  let lastError: unknown;
  client.on("error", (error: unknown) => {
    lastError = error;
  });
  client.once("end", () => {
    close(
      lastError === undefined
        ? { reason: "ECONNRESET", message: "the server closed the connection" }
        : explain(lastError, config),
    );
  });
  return { runId, submit, close, ended: ended.promise };
}

function commandOf(
  batch: Batch,
  by: "evalsha" | "eval",
  done: (error: unknown, reply: unknown) => void,
): Parameters<Redis["sendCommand"]>[0] {
  if (batch.script === "ping") return new Command("ping", [], { replyEncoding: "utf8" }, done);
  const { sha, source } = scripts[batch.script];
  const keys = batch.ops.map((op) => op.key);
  const argv = batch.ops.flatMap(argvOf);
  return new Command(
    by,
    [by === "eval" ? source : sha, keys.length, ...keys, ...argv],
    { replyEncoding: "utf8" },
    done,
  );
}
