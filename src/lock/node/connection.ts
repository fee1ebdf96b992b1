import { performance } from "node:perf_hooks";
import { Command } from "ioredis";
import type { ScriptName } from "../scripts.ts";
import type { NodeVerdict } from "../types.ts";
import { createBatcher } from "./batcher.ts";
import type { ReadyClient } from "./client.ts";
import { discard } from "./dial.ts";
import { bulkString, callOnWire, type EvalBy, isVote, type NodeOp } from "./op.ts";
import { endsConnection, type NodeFailure } from "./reasons.ts";
import { createVerdicts, itemsOf } from "./verdicts.ts";

/** What became of a connection that ended. */
export interface ConnectionEnd extends NodeFailure {
  /** Sets that were sent and never answered: the server may execute them yet (its socket buffer outlives ours). */
  readonly orphans: readonly NodeOp[];
}

/** One TCP connection to one server process. */
export interface Connection {
  /** Sends with everything else of this event-loop turn. Operations on one key keep their order, always. */
  submit(op: NodeOp): void;
  /** A command beside the locks; `answered` is not called when the connection ends first. */
  call(words: readonly string[], answered: (reply: unknown, rttMs: number) => void): void;
  /** Ends the connection; everything unanswered settles as unknown. */
  close(failure: NodeFailure): void;
  readonly ended: Promise<ConnectionEnd>;
}

/** One command on the wire. */
interface Call {
  readonly script: ScriptName | null;
  readonly ops: readonly NodeOp[];
  readonly words?: readonly string[];
  readonly answered?: (reply: unknown, rttMs: number) => void;
  sentAt: number;
  settled: boolean;
}

export interface ConnectionOptions {
  readonly node: string;
  readonly nodeTimeoutMs: number;
  readonly heartbeatMs: number;
  /** A vote counts only when so many replicas have it. */
  readonly waitReplicas: number;
  readonly onRtt: (rttMs: number) => void;
  /** The node has let a call time out (true), or has answered again after that (false). */
  readonly onSilence: (silent: boolean) => void;
}

const AS_TEXT = { replyEncoding: "utf8" } as const;
const isNoAnswer = (error: unknown) => error instanceof Error && error.name !== "ReplyError";
type Answered = (error: unknown, reply: unknown) => void;

/** A command of ioredis that is written out already: what is the same for all nodes was put together once. */
class WrittenCommand extends Command {
  readonly #text: string;

  constructor(text: string, name: EvalBy, done: Answered) {
    super(name, [], AS_TEXT, done);
    this.#text = text;
  }

  override toWritable(): string {
    return this.#text;
  }
}

/** Without any answer for so many time-outs a connection is given up. */
const TIMEOUTS_BEFORE_RECONNECT = 3;

export function openConnection(ready: ReadyClient, options: ConnectionOptions): Connection {
  const { client, explain } = ready;
  const { nodeTimeoutMs, waitReplicas } = options;
  const { verdictOf, unknown, unavailable } = createVerdicts(options.node);
  const timedOut: NodeFailure = { reason: "TIMEOUT", message: `no answer in ${nodeTimeoutMs} ms` };
  const notReplicated: NodeFailure = {
    reason: "NOREPLICAS",
    message: `fewer than ${waitReplicas} replicas had it in time`,
  };
  const ended = Promise.withResolvers<ConnectionEnd>();
  // Redis answers in the order of the questions: the first is the oldest. An array, because a Set with such a coming and
  // going leaves a chain of old tables behind that the collector takes for alive.
  const inflight: Call[] = [];
  const marker = {
    keyOnWire: bulkString(ready.markerKey),
    textOnWire: bulkString(ready.marker.text),
  };
  let timer: NodeJS.Timeout | undefined;
  let lastSent = performance.now();
  // One call timed out and nothing was heard since: asking more would only pile up work for a hung server.
  let silent = false;
  let closed: NodeFailure | undefined;

  function send(call: Call, by: EvalBy = "evalsha"): void {
    call.sentAt = performance.now();
    lastSent = call.sentAt;
    inflight.push(call);
    if (waitReplicas === 0 || call.script === null || !isVote(call.script)) {
      client.sendCommand(commandOf(call, by, (error, reply) => onReply(call, error, reply)));
    } else sendReplicated(call, by);
    timer ??= setTimeout(onTimer, nodeTimeoutMs);
  }

  function commandOf(call: Call, by: EvalBy, done: Answered): Command {
    if (call.script === null) {
      const [name = "ping", ...args] = call.words ?? [];
      return new Command(name, args, AS_TEXT, done);
    }
    return new WrittenCommand(callOnWire(call.script, by, call.ops, marker), by, done);
  }

  /** The answer counts when WAIT, right behind it, says that enough replicas have it too. */
  function sendReplicated(call: Call, by: EvalBy): void {
    let answer: unknown;
    let failed = false;
    const keep = (error: unknown, reply: unknown) => {
      answer = reply;
      failed = error !== null && error !== undefined;
      if (failed) onReply(call, error, reply);
    };
    const judge = (error: unknown, acks: unknown) => {
      if (!failed) onReply(call, error, answer, Number(acks) >= waitReplicas);
    };
    const words = [waitReplicas, Math.ceil(nodeTimeoutMs / 2)];
    client.sendCommand(commandOf(call, by, keep));
    client.sendCommand(new Command("wait", words, AS_TEXT, judge));
  }

  function settleAll(call: Call, verdict: NodeVerdict): void {
    if (call.settled) return;
    call.settled = true;
    for (const op of call.ops) op.settle(verdict);
  }

  function onReply(call: Call, error: unknown, reply: unknown, replicated = true): void {
    if (isNoAnswer(error)) {
      // The connection is ending, and its "end" event may come a moment later than this rejection.
      close(explain(error));
      return;
    }
    if (closed !== undefined || inflight[0] !== call) return;
    inflight.shift();
    if (error !== null && error !== undefined) {
      onError(call, error as Error);
      return;
    }
    hear(false);
    const rttMs = performance.now() - call.sentAt;
    options.onRtt(rttMs);
    call.answered?.(reply, rttMs);
    const items = itemsOf(reply, call.ops.length);
    const late = call.settled;
    call.settled = true;
    for (const [i, op] of call.ops.entries()) {
      const verdict = verdictOf(items[i]);
      if (late) op.late?.(verdict);
      else op.settle(replicated || verdict.outcome !== "yes" ? verdict : unknown(notReplicated));
    }
  }

  function onError(call: Call, error: Error): void {
    const failure = explain(error);
    hear(false);
    if (error.message.startsWith("NOSCRIPT") && call.script !== null) {
      // SCRIPT FLUSH by somebody.
      again(call, unavailable(failure));
      return;
    }
    settleAll(call, unavailable(failure));
    if (endsConnection(failure.reason)) close(failure);
  }

  /**
   * Sends it a second time, but for what was overtaken: a release behind it, whose script the server still knew, has found
   * nothing, and nobody would delete what is set now; and a release must not delete what was set behind it.
   */
  function again(call: Call, dropped: NodeVerdict): void {
    const isRelease = call.script === "release";
    const opposite = inflight.filter(
      ({ script }) => script !== null && (isRelease ? isVote(script) : script === "release"),
    );
    const overtaken = new Set(
      opposite.flatMap(({ ops }) => ops.map(({ request }) => request.pair)),
    );
    const ops: NodeOp[] = [];
    for (const op of call.ops) {
      if (!overtaken.has(op.request.pair)) ops.push(op);
      else if (call.settled) op.late?.(dropped);
      else op.settle(dropped);
    }
    if (ops.length > 0) send({ ...call, ops }, "eval");
  }

  function hear(nothing: boolean): void {
    if (silent === nothing) return;
    silent = nothing;
    options.onSilence(nothing);
  }

  /** The oldest question decides: after one time-out it is unknown, after three the connection is given up. */
  function onTimer(): void {
    // Two turns of grace: answers that wait behind a stalled event loop are read before anything is called late.
    setImmediate(() => setImmediate(judgeSilence));
  }

  function judgeSilence(): void {
    timer = undefined;
    const [oldest] = inflight;
    if (closed !== undefined || oldest === undefined) return;
    const now = performance.now();
    const giveUpAt = oldest.sentAt + nodeTimeoutMs * TIMEOUTS_BEFORE_RECONNECT;
    if (now >= giveUpAt) {
      const waited = Math.round(now - oldest.sentAt);
      close({ reason: "TIMEOUT", message: `no answer in ${waited} ms` });
      return;
    }
    let wakeAt = giveUpAt;
    for (const call of inflight) {
      if (call.settled) continue;
      if (now < call.sentAt + nodeTimeoutMs) {
        wakeAt = Math.min(wakeAt, call.sentAt + nodeTimeoutMs);
        break;
      }
      hear(true);
      settleAll(call, unknown(timedOut));
    }
    if (closed === undefined) timer ??= setTimeout(onTimer, Math.max(1, wakeAt - now));
  }

  const batcher = createBatcher((script, ops) => send({ script, ops, sentAt: 0, settled: false }));

  function submit(op: NodeOp): void {
    if (closed !== undefined) op.settle(unavailable(closed));
    // A delete is sent even so: behind the set that it has to undo, on the same connection (FIFO).
    else if (silent && op.request.script !== "release") op.settle(unavailable(timedOut));
    else batcher.add(op);
  }

  function call(words: readonly string[], answered?: Call["answered"]): void {
    if (closed !== undefined) return;
    send({
      script: null,
      ops: [],
      words,
      ...(answered && { answered }),
      sentAt: 0,
      settled: false,
    });
  }

  const heartbeat = setInterval(() => {
    if (inflight.length === 0 && performance.now() - lastSent >= options.heartbeatMs)
      call(["ping"]);
  }, options.heartbeatMs);

  function close(failure: NodeFailure): void {
    if (closed !== undefined) return;
    closed = failure;
    clearInterval(heartbeat);
    clearTimeout(timer);
    discard(client);
    const orphans: NodeOp[] = [];
    for (const call of inflight.splice(0)) {
      if (call.script === "acquire") orphans.push(...call.ops);
      settleAll(call, unknown(failure));
    }
    for (const op of batcher.drain()) op.settle(unavailable(failure));
    ended.resolve({ ...failure, orphans });
  }

  let lastError: unknown;
  client.on("error", (error: unknown) => {
    lastError = error;
  });
  const onEnd = () => {
    close(
      lastError === undefined
        ? { reason: "ECONNRESET", message: "the server closed the connection" }
        : explain(lastError),
    );
  };
  client.once("end", onEnd);
  // It ended between its greeting and now; no event will come.
  if (client.status !== "ready") onEnd();
  return { submit, call, close, ended: ended.promise };
}
