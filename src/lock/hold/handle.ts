import { LockLostError } from "../errors.ts";
import type { Hold } from "./hold.ts";
import type { ReleaseResult } from "../types.ts";

/** A lock held by whoever has this object. Pass it on explicitly to nest. */
export interface LockHandle extends AsyncDisposable {
  readonly keys: readonly string[];
  /** What the nodes store; whoever knows it may renew and release. */
  readonly value: string;
  /** From the fencing source, if one was given. */
  readonly token: bigint | undefined;
  /** Aborts with a LockLostError when the lock is lost, by a local deadline; not when it is released. */
  readonly signal: AbortSignal;
  /** Milliseconds; 0 when it is not held. Ask before an effect, and again after every pause. */
  remainingMs(): number;
  /** By the deadline, not by a flag: right even when the process slept. */
  isHeld(): boolean;
  /** @throws LockLostError when it is lost or was released */
  assertHeld(): void;
  /** Renews for `leaseMs` from now. @throws LockLostError */
  extend(leaseMs: number): Promise<void>;
  /**
   * The same lock once more, for code that locks what its caller may have locked: its release gives back this level
   * only. @throws LockLostError when the lock is not held
   */
  reenter(): LockHandle;
  /** Never throws for a lost lock. An inner level is `released` at once; the last one gives the lock back. */
  release(): Promise<ReleaseResult["outcome"]>;
}

export function createHandle(hold: Hold, token: bigint | undefined): LockHandle {
  return new Level(hold, token, { open: 0 });
}

/**
 * A class, unlike elsewhere: an object literal defines accessors and symbols anew for each object, which takes three times
 * as long as all the rest of a hold.
 */
class Level implements LockHandle {
  readonly keys: readonly string[];
  readonly value: string;
  readonly token: bigint | undefined;
  readonly #hold: Hold;
  readonly #levels: { open: number };
  #released: Promise<ReleaseResult["outcome"]> | undefined;

  constructor(hold: Hold, token: bigint | undefined, levels: { open: number }) {
    this.keys = hold.keys;
    this.value = hold.value;
    this.token = token;
    this.#hold = hold;
    this.#levels = levels;
    levels.open += 1;
  }

  get signal() {
    return this.#hold.signal();
  }

  remainingMs = () => (this.#released === undefined ? this.#hold.remainingMs() : 0);

  isHeld = () => this.#released === undefined && this.#hold.isHeld();

  assertHeld = () => {
    this.#hold.assertHeld();
    if (this.#released !== undefined) throw new LockLostError("released", this.keys);
  };

  extend = async (leaseMs: number) => {
    this.assertHeld();
    await this.#hold.renew(leaseMs);
  };

  reenter = () => {
    this.assertHeld();
    return new Level(this.#hold, this.token, this.#levels);
  };

  release = () => {
    if (this.#released === undefined) {
      this.#levels.open -= 1;
      this.#released =
        this.#levels.open === 0 ? this.#hold.release() : Promise.resolve("released" as const);
    }
    return this.#released;
  };

  async [Symbol.asyncDispose]() {
    await this.release();
  }
}
