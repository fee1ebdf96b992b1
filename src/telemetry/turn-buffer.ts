import { Writable } from "node:stream";

export interface TurnBuffer {
  readonly stream: NodeJS.WritableStream;
  flush(): void;
}

/**
 * Hands on what one turn of the event loop writes in one piece. A pipe is written to synchronously, and each write wakes its
 * reader: a thousand lines one by one cost more than what they tell of.
 */
export function createTurnBuffer(output: NodeJS.WritableStream): TurnBuffer {
  let pending = "";

  function flush(): void {
    const text = pending;
    pending = "";
    if (text !== "") output.write(text);
  }

  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      if (pending === "") setImmediate(flush);
      pending += text;
      done();
    },
  });
  return { stream, flush };
}
