import { createKubeClient, createReflector, type KubeClient } from "../../src/kube/index.ts";
import { resources } from "../../src/controller/caches.ts";
import type { Job } from "../../src/api/types.ts";

export interface Seen {
  name: string;
  owner: string;
  /** Tick that the Job is for, ms: from its name, minutes or seconds since the epoch. */
  tick: number;
  /** Wall clock when a watch showed it, ms. */
  at: number;
}

/** Watches all Jobs and notes when each was first shown. */
export async function watchJobs(
  client: KubeClient,
): Promise<{ seen: Seen[]; stop(): Promise<void> }> {
  const seen: Seen[] = [];
  const reflector = createReflector<Job>({ client, type: resources.jobs });
  reflector.start();
  await reflector.synced();
  reflector.store.subscribe({
    added({ metadata }) {
      const dash = metadata.name.lastIndexOf("-");
      const number = Number(metadata.name.slice(dash + 1));
      // Names count minutes (8 digits until 2160) or seconds (10 digits).
      const tick = number * (number < 1e9 ? 60_000 : 1_000);
      seen.push({ name: metadata.name, owner: metadata.name.slice(0, dash), tick, at: Date.now() });
    },
  });
  return {
    seen,
    stop: async () => {
      await reflector[Symbol.asyncDispose]();
    },
  };
}

export function clientFor(config: Parameters<typeof createKubeClient>[0]["config"]): KubeClient {
  return createKubeClient({ config, maxInFlight: 64, userAgent: "lockedcron-bench" });
}

/** Waits for an instant of the wall clock, ms. */
export function until(instant: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, instant - Date.now())));
}

export function nextMinute(atLeastMs: number): number {
  return Math.ceil((Date.now() + atLeastMs) / 60_000) * 60_000;
}

/** Creates objects with bounded concurrency. */
export async function inParallel(
  count: number,
  width: number,
  make: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await make(next++);
  };
  await Promise.all(Array.from({ length: width }, work));
}
