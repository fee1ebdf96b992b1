import type { Dispatcher } from "undici";

import type { Clock, Timers } from "../clock.ts";
import { errorOfConnection, KubeError, TransportReason } from "./errors.ts";

/**
 * One HTTP request and its answer. This is where "sent at most once" is made true: undici may put a request on the
 * wire a second time (after a GOAWAY or a refused stream of HTTP/2 it queues it again, whatever the method, and after a
 * broken connection whatever had not failed yet). Before each start it calls `onRequestStart`; the second such call is
 * answered by aborting the request, before any byte of it is written. The same call tells whether anything was sent at
 * all, hence whether a failure leaves the outcome unknown.
 */
export interface ExchangeRequest {
  /** For error messages. */
  action: string;
  method: string;
  /** With query. */
  path: string;
  origin: string;
  headers: Record<string, string>;
  body?: Buffer | undefined;
  /** Monotonic ms by which the answer must be complete. */
  deadline: number;
  /** The deadline is only for the head of the answer; its body goes on until it ends (a watch). */
  streaming?: boolean;
  signal?: AbortSignal | undefined;
}

export interface ExchangeSink {
  head(status: number, headers: Record<string, string | string[] | undefined>): void;
  data(chunk: Buffer): void;
  end(): void;
  /** Called at most once, and nothing after it. */
  fail(error: KubeError): void;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

export interface ExchangeTime {
  clock: Clock;
  timers: Timers;
}

/** Sends the request and feeds the sink. Returns what calls it off, with the error that the sink then gets. */
export function startExchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  sink: ExchangeSink,
  { clock, timers }: ExchangeTime,
): (error: KubeError) => void {
  const { action, signal, deadline } = request;
  let sent = false;
  let over = false;
  let controller: Dispatcher.DispatchController | undefined;

  const error = (reason: TransportReason, message: string): KubeError =>
    new KubeError({ action, status: 0, reason, message, outcome: sent ? "unknown" : "rejected" });

  let timed = true;
  const callOffTimer = timers.after(Math.max(0, deadline - clock.monotonic()), () => {
    // After a stall of this process the answer may lie in the socket, read right after the timers: let it win.
    setImmediate(() => setImmediate(() => timed && fail(late())));
  });
  const late = (): KubeError =>
    error(TransportReason.DeadlineExceeded, "no answer from the API server in time");
  const aborted = (): void =>
    fail(error(TransportReason.Aborted, "the call was given up by its caller"));

  function finish(): boolean {
    if (over) return false;
    over = true;
    callOffTimer();
    signal?.removeEventListener("abort", aborted);
    return true;
  }

  function fail(failure: KubeError): void {
    if (!finish()) return;
    controller?.abort(failure);
    sink.fail(failure);
  }

  signal?.addEventListener("abort", aborted, { once: true });
  if (signal?.aborted === true) {
    aborted();
    return fail;
  }

  dispatcher.dispatch(
    {
      origin: request.origin,
      method: request.method,
      path: request.path,
      headers: request.headers,
      body: request.body ?? null,
      // Our own deadline counts; undici's timers would only race with it.
      headersTimeout: 0,
      bodyTimeout: 0,
    },
    {
      onRequestStart(starting) {
        controller = starting;
        if (over) {
          starting.abort(new Error("called off"));
        } else if (sent) {
          fail(
            error(TransportReason.ConnectionLost, "the connection broke; not sent a second time"),
          );
        } else if (clock.monotonic() >= deadline) {
          // ORDER: looked at before the first byte. A process that was stopped between the call and its start must not
          // send a request that everyone else gave up long ago.
          fail(late());
        } else {
          sent = true;
        }
      },
      onResponseStart(_controller, status, headers) {
        if (over || status < 200) return;
        if (request.streaming === true) {
          timed = false;
          callOffTimer();
        }
        sink.head(status, headers);
      },
      onResponseData(_controller, chunk) {
        if (!over) sink.data(chunk);
      },
      onResponseEnd() {
        if (finish()) sink.end();
      },
      onResponseError(_controller, failure) {
        if (!over) fail(errorOfConnection(action, failure, sent));
      },
    },
  );
  return fail;
}

/** The whole answer, whatever its status. Rejects with KubeError when there is none. */
export function exchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  time: ExchangeTime,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let headers: Answer["headers"] = {};
    const chunks: Buffer[] = [];
    startExchange(
      dispatcher,
      request,
      {
        head(code, fields) {
          status = code;
          headers = fields;
        },
        data: (chunk) => void chunks.push(chunk),
        end() {
          const [first, second] = chunks;
          const whole = first !== undefined && second === undefined ? first : Buffer.concat(chunks);
          resolve({ status, headers, body: whole });
        },
        fail: reject,
      },
      time,
    );
  });
}
