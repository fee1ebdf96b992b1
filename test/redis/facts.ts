import { setTimeout as sleep } from "node:timers/promises";

/** Looks every few milliseconds until the fact is there. @throws Error with the last sight when it never comes */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  holds: (seen: T) => boolean = Boolean,
  timeoutMs = 20_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (performance.now() > deadline) {
      throw new Error(`never came true: ${what}; last seen ${JSON.stringify(seen)}`);
    }
    await sleep(5);
  }
}
