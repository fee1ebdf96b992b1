/** Fences, the judgement of their holders and the sweep of what is left over, wired to one another. */
import type { Lease } from "../api/types.ts";
import type { Clock, Timers } from "../clock.ts";
import type { KubeClient, ResourceType } from "../kube/index.ts";
import { createMutexBook, type MutexBook } from "./mutexes.ts";
import { createMutexStore } from "./mutex-store.ts";
import { createMutexSweep } from "./mutex-sweep.ts";
import type { Jobs, Ledgers, Locks, Members } from "./ports.ts";

export interface MutexParts extends AsyncDisposable {
  readonly book: MutexBook;
  readonly watch: { changed(lease: Lease): void; deleted(lease: Lease): void };
  /** Begins to sweep, once the caches are complete. */
  start(): void;
}

export function createMutexParts(o: {
  client: KubeClient;
  leases: ResourceType<Lease>;
  clock: Clock;
  timers: Timers;
  ledgers: Ledgers;
  jobs: Jobs;
  locks: Locks;
  lockPrefix: string;
  members: Pick<Members, "live">;
  replica: string;
  /** A fence was taken, freed or deleted. */
  onChange(mutex: string): void;
}): MutexParts {
  const { client, leases, clock, onChange } = o;
  const fences = createMutexStore({ client, leases, clock, onChange });
  const book = createMutexBook({ ...o, fences });
  const sweep = createMutexSweep({ ...o, held: fences.held, mutexes: book });
  return {
    book,
    watch: { changed: fences.observe, deleted: fences.observeDeleted },
    start: sweep.start,
    [Symbol.asyncDispose]: () => sweep[Symbol.asyncDispose](),
  };
}
