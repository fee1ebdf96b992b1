import { Writable } from "node:stream";
import type { Timers } from "../clock.ts";

export interface LineBuffer {
  readonly stream: NodeJS.WritableStream;
  flush(): void;
}

/** Lines are handed on so late at the most, ms. */
const LINGER_MS = 10;

/**
 * Hands on in one piece what is written within a few milliseconds. A pipe is written to synchronously, and each write wakes
 * its reader: a thousand lines one by one cost more than what they tell of.
 */
export function createLineBuffer(output: NodeJS.WritableStream, timers: Timers): LineBuffer {
  let pending = "";
  let callOff: (() => void) | undefined;

  function flush(): void {
    callOff?.();
    callOff = undefined;
    const text = pending;
    pending = "";
    if (text !== "") output.write(text);
  }

  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      callOff ??= timers.after(LINGER_MS, flush);
      pending += text;
      done();
    },
  });
  return { stream, flush };
}
