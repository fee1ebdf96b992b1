import type { Clock, Timers } from "../clock.ts";
import { errorOfAnswer, errorOfStatus, KubeError, TransportReason } from "./errors.ts";
import type { KubeObject } from "./resources.ts";
import { retryAfterHeader, type Transport, type TransportRequest } from "./transport.ts";

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";

export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: WatchEventType;
  object: T;
}

/**
 * Without an event for this long the watch is taken for dead. API servers send a bookmark about every minute. A dead
 * connection is found sooner, by the ping; this finds a stream that a proxy forgot on a live connection.
 */
export const WATCH_SILENCE_MS = 90_000;

/**
 * When the process itself stood still (SIGSTOP, a frozen VM) for longer than this, what then comes out of the socket is
 * old, and must not pass for news: the watch is ended and taken up again.
 */
const STALL_MS = 5000;
const BEAT_MS = 1000;

export interface WatchOptions<T extends KubeObject> {
  silenceMs: number;
  onOpen?: () => void;
  onEvent: (event: WatchEvent<T>) => void;
}

/** Resolves when the server ended the watch in good order; rejects with KubeError in any other case. */
export function runWatch<T extends KubeObject>(
  transport: Transport,
  request: TransportRequest,
  { silenceMs, onOpen, onEvent }: WatchOptions<T>,
  { clock, timers }: { clock: Clock; timers: Timers },
): Promise<void> {
  const { action } = request;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const lines = createLineReader();
  const refusal: string[] = [];
  let status = 0;
  let retryAfter: string | undefined;
  let callOff: ((error: KubeError) => void) | undefined;
  let lastBeat = clock.monotonic();
  let lastEvent = lastBeat;
  let callOffBeat = (): void => undefined;

  const lost = (message: string): KubeError =>
    new KubeError({
      action,
      status: 0,
      reason: TransportReason.ConnectionLost,
      message,
      outcome: "unknown",
    });

  function beat(): void {
    lastBeat = clock.monotonic();
    callOffBeat = timers.after(BEAT_MS, beat);
    if (lastBeat - lastEvent > silenceMs) {
      callOff?.(lost(`nothing came for ${Math.round(silenceMs / 1000)} s, not even a bookmark`));
    }
  }

  function take(line: string): void {
    const event = parseEvent<T>(action, line);
    if (event.type === "ERROR") throw errorOfStatus(action, event.object);
    onEvent(event);
  }

  function end(settle: () => void): void {
    callOffBeat();
    settle();
  }

  transport
    .stream(request, {
      head(code, headers) {
        status = code;
        retryAfter = retryAfterHeader(headers);
        lastBeat = lastEvent = clock.monotonic();
        if (status === 200) {
          beat();
          onOpen?.();
        }
      },
      data(chunk) {
        const now = clock.monotonic();
        const found = lines.push(chunk);
        if (status !== 200) {
          // The API server puts a line's end behind its refusals as well.
          refusal.push(...found);
          return;
        }
        if (now - lastBeat > STALL_MS) {
          callOff?.(lost("this process stood still; what was received meanwhile is old"));
          return;
        }
        lastEvent = now;
        try {
          for (const line of found) take(line);
        } catch (error) {
          callOff?.(error instanceof KubeError ? error : lost(String(error)));
        }
      },
      end() {
        const body = [...refusal, lines.rest()].join("\n");
        end(
          status === 200 ? resolve : () => reject(errorOfAnswer(action, status, retryAfter, body)),
        );
      },
      fail: (error) => end(() => reject(error)),
    })
    .then((stop) => (callOff = stop), reject);
  return promise;
}

type RawEvent<T extends KubeObject> = WatchEvent<T> | { type: "ERROR"; object: object };

function parseEvent<T extends KubeObject>(action: string, line: string): RawEvent<T> {
  try {
    const event = JSON.parse(line) as RawEvent<T> | null;
    if (typeof event?.type === "string" && typeof event.object === "object") return event;
  } catch {
    // Said below.
  }
  throw new KubeError({
    action,
    status: 200,
    reason: TransportReason.BadAnswer,
    message: `not a watch event: ${line.slice(0, 100)}`,
    outcome: "unknown",
  });
}

/** Splits a stream of bytes into lines, without looking at any byte twice. */
function createLineReader(): { push(chunk: Buffer): string[]; rest(): string } {
  let pending: Buffer[] = [];
  return {
    push(chunk) {
      const found: string[] = [];
      let start = 0;
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
        const last = chunk.subarray(start, end);
        const line = (pending.length === 0 ? last : Buffer.concat([...pending, last])).toString();
        if (line.trim() !== "") found.push(line);
        pending = [];
        start = end + 1;
      }
      if (start < chunk.length) pending.push(chunk.subarray(start));
      return found;
    },
    rest: () => Buffer.concat(pending).toString(),
  };
}
