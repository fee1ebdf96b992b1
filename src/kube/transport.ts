import type { Dispatcher } from "undici";

import type { Clock, Timers } from "../clock.ts";
import { backoffMs } from "../domain/backoff.ts";
import { createConnections } from "./connections.ts";
import type { Credentials, CredentialSource } from "./credentials.ts";
import { errorOfAnswer, hasReason, KubeError, TransportReason } from "./errors.ts";
import {
  type Answer,
  exchange,
  type ExchangeRequest,
  type ExchangeSink,
  startExchange,
} from "./exchange.ts";
import { type CallPriority, createGate, type Gate } from "./gate.ts";
import type { ServerTime } from "./verbs.ts";

/**
 * Requests against the API server: credentials, places, deadlines, and the one rule about repeating: a read is repeated
 * when that can help, a write is sent at most once, whatever happens.
 */
export interface TransportRequest {
  action: string;
  method: string;
  /** With query, without the base path of the server. */
  path: string;
  accept: string;
  contentType?: string | undefined;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** Over everything: the wait for a place, credentials, connection, answer, repetitions. */
  timeoutMs: number;
  priority: CallPriority;
}

export interface Transport extends AsyncDisposable {
  /** The body of a 2xx answer, parsed. Rejects with KubeError. */
  call(request: TransportRequest): Promise<unknown>;
  /** A stream without end. `timeoutMs` is for its head. Resolves with what calls it off. */
  stream(request: TransportRequest, sink: ExchangeSink): Promise<(error: KubeError) => void>;
}

export interface TransportOptions {
  credentials: CredentialSource;
  userAgent: string;
  maxInFlight: number;
  clock: Clock;
  timers: Timers;
  random: () => number;
  onServerTime?: ((time: ServerTime) => void) | undefined;
}

/** A read is sent at most this often, and never past its deadline. */
const MAX_READS = 6;
/**
 * A call that got no answer for so long may have met a black hole, and the idle connections beside it lead to the same
 * place: each would cost one more call its deadline. New ones cost a few handshakes.
 */
const SUSPICIOUS_SILENCE_MS = 2000;
const READ_BACKOFF = { baseMs: 100, maxMs: 2000 };

export function createTransport(options: TransportOptions): Transport {
  const { credentials, clock, timers, random } = options;
  const connections = createConnections(options.maxInFlight);
  const gate: Gate = createGate(options.maxInFlight);
  let disposed = false;

  function refuseWhenDisposed({ action }: TransportRequest): void {
    if (disposed) throw notSent(action, TransportReason.Aborted, "this client was closed");
  }

  /** One attempt. `deadline` in monotonic ms. */
  async function attempt(request: TransportRequest, deadline: number): Promise<Answer> {
    const place = gate.enter(request.priority);
    try {
      if (place.ready !== undefined) {
        await within(place.ready, request, deadline, "waiting for other calls to end");
      }
      const who = await within(credentials.current(), request, deadline, "waiting for credentials");
      refuseWhenDisposed(request);
      const answer = await sendOn(
        connections.lane(who, "calls"),
        requestOf(request, who),
        deadline,
      );
      if (answer.status === 401) credentials.refused(who);
      return answer;
    } finally {
      place.leave();
    }
  }

  async function sendOn(
    calls: Dispatcher,
    request: Omit<ExchangeRequest, "deadline">,
    deadline: number,
  ): Promise<Answer> {
    const sentAt = clock.monotonic();
    try {
      const answer = await exchange(calls, { ...request, deadline }, { clock, timers });
      tellTime(answer, sentAt);
      return answer;
    } catch (error) {
      if (
        hasReason(error, TransportReason.DeadlineExceeded) &&
        clock.monotonic() - sentAt >= SUSPICIOUS_SILENCE_MS
      ) {
        connections.suspect(calls);
      }
      throw error;
    }
  }

  function tellTime({ headers }: Answer, sentAt: number): void {
    const date = Date.parse(String(headers["date"]));
    if (Number.isNaN(date)) return;
    options.onServerTime?.({ date, sentAt, receivedAt: clock.monotonic() });
  }

  function requestOf(request: TransportRequest, who: Credentials) {
    const { action, method, body, contentType } = request;
    return {
      action,
      method,
      path: who.basePath + request.path,
      origin: who.origin,
      headers: {
        accept: request.accept,
        "user-agent": options.userAgent,
        ...(body === undefined ? {} : { "content-type": contentType ?? "application/json" }),
        ...who.headers,
      },
      body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
      signal: request.signal,
    };
  }

  async function read(request: TransportRequest, deadline: number): Promise<unknown> {
    for (let sent = 1; ; sent++) {
      let failure: KubeError;
      try {
        return parse(request.action, await attempt(request, deadline));
      } catch (error) {
        if (!(error instanceof KubeError) || !isWorthRepeating(error, sent)) throw error;
        failure = error;
      }
      const full = backoffMs(sent, READ_BACKOFF.baseMs, READ_BACKOFF.maxMs);
      const wait = Math.max(full / 2 + (full / 2) * random(), failure.retryAfterMs ?? 0);
      // Better the server's own words now than a bare time-out later.
      if (sent >= MAX_READS || clock.monotonic() + wait >= deadline) throw failure;
      await pause(wait, request);
    }
  }

  async function pause(ms: number, { action, signal }: TransportRequest): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const callOff = timers.after(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      const onAbort = (): void => {
        callOff();
        reject(notSent(action, TransportReason.Aborted, "the call was given up by its caller"));
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
    });
  }

  /** Waits for something that comes before the request is sent, within its deadline and signal. */
  async function within<R>(
    work: Promise<R>,
    { action, signal }: TransportRequest,
    deadline: number,
    what: string,
  ): Promise<R> {
    const { promise, reject } = Promise.withResolvers<never>();
    const callOff = timers.after(Math.max(0, deadline - clock.monotonic()), () =>
      reject(notSent(action, TransportReason.DeadlineExceeded, `time ran out ${what}`)),
    );
    const onAbort = (): void =>
      reject(notSent(action, TransportReason.Aborted, "the call was given up by its caller"));
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    try {
      return await Promise.race([work, promise]);
    } finally {
      callOff();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  return {
    async call(request) {
      const deadline = clock.monotonic() + request.timeoutMs;
      if (request.method === "GET") return await read(request, deadline);
      return parse(request.action, await attempt(request, deadline));
    },
    async stream(request, sink) {
      const deadline = clock.monotonic() + request.timeoutMs;
      const who = await within(credentials.current(), request, deadline, "waiting for credentials");
      refuseWhenDisposed(request);
      return startExchange(
        connections.lane(who, "watches"),
        { ...requestOf(request, who), deadline, streaming: true },
        {
          ...sink,
          head(status, headers) {
            if (status === 401) credentials.refused(who);
            sink.head(status, headers);
          },
        },
        { clock, timers },
      );
    },
    async [Symbol.asyncDispose]() {
      disposed = true;
      await connections.destroy();
    },
  };
}

function notSent(action: string, reason: TransportReason, message: string): KubeError {
  return new KubeError({ action, status: 0, reason, message, outcome: "rejected" });
}

/** Of a read. 401 only once: by then the credentials were loaded anew. */
function isWorthRepeating({ status, reason }: KubeError, sent: number): boolean {
  if (status === 401) return sent === 1;
  if (status !== 0) return status === 429 || status >= 500;
  return (
    reason === TransportReason.ConnectionLost ||
    reason === TransportReason.ConnectionRefused ||
    reason === TransportReason.UnknownHost
  );
}

export function retryAfterHeader(headers: Answer["headers"]): string | undefined {
  const value = headers["retry-after"];
  return Array.isArray(value) ? value[0] : value;
}

function parse(action: string, { status, headers, body }: Answer): unknown {
  const text = body.toString();
  if (status < 200 || status > 299) {
    throw errorOfAnswer(action, status, retryAfterHeader(headers), text);
  }
  if (text === "") return undefined;
  const type = String(headers["content-type"] ?? "");
  if (!type.includes("json")) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new KubeError({
      action,
      status,
      reason: TransportReason.BadAnswer,
      message: `the server's answer is no JSON: ${text.slice(0, 100)}`,
      outcome: "unknown",
      cause,
    });
  }
}
