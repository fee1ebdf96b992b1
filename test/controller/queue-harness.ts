import {
  createWorkQueue,
  done,
  type Outcome,
  type ReconcileContext,
  type WorkQueueOptions,
} from "../../src/controller/workqueue.ts";
import { manualTime, type ManualTime } from "./manual-time.ts";

export type Reconcile = (key: string, context: ReconcileContext) => Promise<Outcome>;

/** A queue whose time is moved by hand, with the keys in the order in which they were started. */
export function setUp(
  reconcile: Reconcile,
  options: Partial<Omit<WorkQueueOptions, "reconcile">> = {},
  time: ManualTime = manualTime(),
) {
  const started: string[] = [];
  const queue = createWorkQueue({
    concurrency: 1,
    clock: time.clock,
    timers: time.timers,
    random: () => 1,
    backoff: { baseMs: 100, maxMs: 1000 },
    ...options,
    async reconcile(key, context) {
      started.push(key);
      return await reconcile(key, context);
    },
  });
  return { queue, started, time };
}

/** A reconcile that runs until told how to end. */
export function held() {
  const runs: { key: string; context: ReconcileContext; end: (outcome: Outcome) => void }[] = [];
  const reconcile: Reconcile = (key, context) => {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    runs.push({ key, context, end: resolve });
    return promise;
  };
  return { runs, reconcile };
}

export const immediately: Reconcile = () => Promise.resolve(done());
