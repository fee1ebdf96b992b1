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
  let levels = 0;

  function level(): LockHandle {
    levels += 1;
    let released: Promise<ReleaseResult["outcome"]> | undefined;
    const release = (): Promise<ReleaseResult["outcome"]> => {
      if (released === undefined) {
        levels -= 1;
        released = levels === 0 ? hold.release() : Promise.resolve("released");
      }
      return released;
    };
    return {
      keys: hold.keys,
      value: hold.value,
      token,
      get signal() {
        return hold.signal;
      },
      remainingMs: () => (released === undefined ? hold.remainingMs() : 0),
      isHeld: () => released === undefined && hold.isHeld(),
      assertHeld: hold.assertHeld,
      extend: hold.renew,
      reenter() {
        hold.assertHeld();
        return level();
      },
      release,
      async [Symbol.asyncDispose]() {
        await release();
      },
    };
  }

  return level();
}
