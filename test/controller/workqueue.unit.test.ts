import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { again, done, type Outcome, retry, terminal } from "../../src/controller/workqueue.ts";
import { manualTime, settle } from "./manual-time.ts";
import { held, immediately, setUp } from "./queue-harness.ts";

describe("order", () => {
  it("runs equal priorities in order of arrival", async () => {
    const { queue, started } = setUp(immediately);
    for (const key of ["b", "a", "c"]) queue.add(key);
    await settle();
    expect(started).toEqual(["b", "a", "c"]);
  });

  it("runs higher priorities first", async () => {
    const { queue, started } = setUp(immediately);
    queue.add("low", { priority: -1 });
    queue.add("normal");
    queue.add("high", { priority: 10 });
    queue.add("high too", { priority: 10 });
    await settle();
    expect(started).toEqual(["high", "high too", "normal", "low"]);
  });

  it("raises a key that is added again with a higher priority, and never lowers it", async () => {
    const { queue, started } = setUp(immediately);
    queue.add("first");
    queue.add("raised");
    queue.add("raised", { priority: 5 });
    queue.add("raised", { priority: 1 });
    await settle();
    expect(started).toEqual(["raised", "first"]);
  });

  it("starts none below the floor, until it has fallen", async () => {
    let floor = 10;
    const { queue, started } = setUp(immediately, { floor: () => floor });
    queue.add("low", { priority: 9 });
    queue.add("high", { priority: 10 });
    await settle();
    expect([started, queue.waiting()]).toEqual([["high"], 1]);
    floor = 9;
    queue.resume();
    await settle();
    expect(started).toEqual(["high", "low"]);
  });

  it("holds a key once, however often it is added", async () => {
    const { queue, started } = setUp(immediately);
    for (let i = 0; i < 100; i++) queue.add("a");
    expect(queue.stats().queued).toBe(1);
    await settle();
    expect(started).toEqual(["a"]);
  });
});

describe("one key at a time", () => {
  it("locks a key while it runs, and runs it once more when it was added meanwhile", async () => {
    const { runs, reconcile } = held();
    const { queue, started } = setUp(reconcile, { concurrency: 4 });
    queue.add("a");
    await settle();
    queue.add("a");
    queue.add("a", { priority: 3 });
    await settle();
    expect(started).toEqual(["a"]);
    runs[0]!.end(done());
    await settle();
    expect(started).toEqual(["a", "a"]);
    expect(runs[1]!.context.priority).toBe(3);
    runs[1]!.end(done());
    await settle();
    expect(started).toEqual(["a", "a"]);
  });

  it("runs other keys beside it up to the concurrency", async () => {
    const { runs, reconcile } = held();
    const { queue, started } = setUp(reconcile, { concurrency: 2 });
    for (const key of ["a", "b", "c"]) queue.add(key);
    await settle();
    expect(started).toEqual(["a", "b"]);
    runs[1]!.end(done());
    await settle();
    expect(started).toEqual(["a", "b", "c"]);
  });

  it("holds for any mix of adds and endings: never two at once, and no add is lost", async () => {
    const steps = fc.array(
      fc.record({ key: fc.constantFrom("a", "b", "c", "d"), end: fc.boolean() }),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (script, concurrency) => {
        const inFlight = new Map<string, () => void>();
        const addedAt = new Map<string, number>();
        const startedAt = new Map<string, number>();
        let step = 0;
        let most = 0;
        const { queue } = setUp(
          (key) => {
            expect(inFlight.has(key)).toBe(false);
            startedAt.set(key, step);
            const { promise, resolve } = Promise.withResolvers<Outcome>();
            inFlight.set(key, () => {
              inFlight.delete(key);
              resolve(done());
            });
            most = Math.max(most, inFlight.size);
            return promise;
          },
          { concurrency },
        );
        for (const { key, end } of script) {
          step++;
          if (end) inFlight.get(key)?.();
          else {
            addedAt.set(key, step);
            queue.add(key);
          }
          await settle();
        }
        while (inFlight.size > 0) {
          step++;
          for (const finish of inFlight.values()) finish();
          await settle();
        }
        expect(most).toBeLessThanOrEqual(concurrency);
        for (const [key, at] of addedAt) expect(startedAt.get(key)).toBeGreaterThanOrEqual(at);
      }),
      { numRuns: 200 },
    );
  });
});

describe("outcomes", () => {
  it("done: not run again", async () => {
    const { queue, started, time } = setUp(immediately);
    queue.add("a");
    await time.pass(10_000_000);
    expect(started).toEqual(["a"]);
    expect(time.pendingTimers()).toBe(0);
  });

  it("again: run at that moment of the wall clock, not before", async () => {
    const time = manualTime();
    const at = time.clock.now() + 90_000;
    let first = true;
    const { queue, started } = setUp(
      () => {
        const outcome = first ? again(at) : done();
        first = false;
        return Promise.resolve(outcome);
      },
      {},
      time,
    );
    queue.add("a");
    await time.pass(89_999);
    expect(started).toEqual(["a"]);
    await time.pass(1);
    expect(started).toEqual(["a", "a"]);
  });

  it("retry: backs off exponentially to the maximum, and starts anew after a success", async () => {
    const time = manualTime();
    const ends: Outcome[] = [
      ...Array.from({ length: 6 }, () => retry(new Error("no"))),
      done(),
      retry(new Error("no")),
      done(),
    ];
    const at: number[] = [];
    const seen: number[] = [];
    const { queue } = setUp(
      (_key, { failures }) => {
        at.push(time.clock.monotonic());
        seen.push(failures);
        return Promise.resolve(ends.shift()!);
      },
      {},
      time,
    );
    queue.add("a");
    await time.pass(10_000);
    expect(at).toEqual([0, 100, 300, 700, 1500, 2500, 3500]);
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6]);
    queue.add("a");
    await time.pass(1000);
    expect(at.slice(7)).toEqual([10_000, 10_100]);
    expect(seen.slice(7)).toEqual([0, 1]);
  });

  it("retry: takes a random part of half the delay off, so that failing keys spread", async () => {
    const time = manualTime();
    const at: number[] = [];
    const { queue } = setUp(
      () => {
        at.push(time.clock.monotonic());
        return Promise.resolve(at.length < 3 ? retry(new Error("no")) : done());
      },
      { random: () => 0 },
      time,
    );
    queue.add("a");
    await time.pass(1000);
    expect(at).toEqual([0, 50, 150]);
  });

  it("retry: waits at least as long as the server asked for", async () => {
    const time = manualTime();
    const at: number[] = [];
    const { queue } = setUp(
      () => {
        at.push(time.clock.monotonic());
        return Promise.resolve(at.length < 2 ? retry(new Error("busy"), 7000) : done());
      },
      {},
      time,
    );
    queue.add("a");
    await time.pass(20_000);
    expect(at).toEqual([0, 7000]);
  });

  it("retry: the back-off does not follow a jump of the wall clock", async () => {
    const time = manualTime();
    let runs = 0;
    const { queue } = setUp(
      () => Promise.resolve(++runs === 1 ? retry(new Error("no")) : done()),
      {},
      time,
    );
    queue.add("a");
    await settle();
    time.jump(3_600_000);
    await time.pass(99);
    expect(runs).toBe(1);
    time.jump(-7_200_000);
    await time.pass(1);
    expect(runs).toBe(2);
  });

  it("terminal: not run again until it is added", async () => {
    const outcomes: Outcome[] = [retry(new Error("a")), terminal(new Error("b")), done()];
    const failures: number[] = [];
    const { queue, started, time } = setUp((_key, context) => {
      failures.push(context.failures);
      return Promise.resolve(outcomes.shift()!);
    });
    queue.add("a");
    await time.pass(10_000_000);
    expect(started).toHaveLength(2);
    expect(queue.stats().failing).toBe(0);
    queue.add("a");
    await time.pass(1);
    expect(failures).toEqual([0, 1, 0]);
  });

  it.each([
    ["rejects", () => Promise.reject(new Error("bug"))],
    [
      "throws at once",
      () => {
        throw new Error("bug");
      },
    ],
  ] as const)("a reconcile that %s counts as a retry", async (_how, bug) => {
    const outcomes: Outcome[] = [];
    let runs = 0;
    const { queue, time } = setUp(() => (++runs === 1 ? bug() : Promise.resolve(done())), {
      hooks: { onOutcome: (_key, outcome) => void outcomes.push(outcome) },
    });
    queue.add("a");
    await time.pass(1000);
    expect(outcomes).toEqual([{ kind: "retry", error: new Error("bug") }, { kind: "done" }]);
  });

  it("tells of each key that is added, also while it waits", async () => {
    let adds = 0;
    const { queue } = setUp(() => Promise.resolve(done()), { hooks: { onAdd: () => void adds++ } });
    for (const key of ["a", "a", "b"]) queue.add(key);
    expect(adds).toBe(3);
    await queue.drain(1_000);
    queue.add("c");
    expect(adds).toBe(3);
  });

  it("reports how long a key waited and ran", async () => {
    const time = manualTime();
    const { runs, reconcile } = held();
    const times: unknown[] = [];
    const { queue } = setUp(
      reconcile,
      { hooks: { onOutcome: (key, _outcome, spent) => void times.push([key, spent]) } },
      time,
    );
    queue.add("a");
    queue.add("b");
    await time.pass(30);
    runs[0]!.end(done());
    await time.pass(5);
    runs[1]!.end(done());
    await settle();
    expect(times).toEqual([
      ["a", { waitMs: 0, runMs: 30 }],
      ["b", { waitMs: 30, runMs: 5 }],
    ]);
  });

  it("goes on when a hook throws", async () => {
    const { queue, started } = setUp(immediately, {
      hooks: {
        onOutcome() {
          throw new Error("broken hook");
        },
      },
    });
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    queue.add("a");
    queue.add("b");
    expect((await warned).message).toBe("broken hook");
    expect(started).toEqual(["a", "b"]);
  });
});

describe("forget", () => {
  it("drops what is queued, scheduled and counted", async () => {
    const { queue, started, time } = setUp(() => Promise.resolve(retry(new Error("no"))));
    queue.add("a");
    await settle();
    expect(queue.stats()).toMatchObject({ scheduled: 1, failing: 1 });
    queue.add("a");
    queue.forget("a");
    await time.pass(100_000);
    expect(started).toEqual(["a"]);
    expect(queue.stats()).toEqual({ queued: 0, scheduled: 0, running: [], failing: 0 });
  });

  it("drops the second run of a key that runs", async () => {
    const { runs, reconcile } = held();
    const { queue, started } = setUp(reconcile);
    queue.add("a");
    await settle();
    queue.add("a");
    queue.forget("a");
    runs[0]!.end(done());
    await settle();
    expect(started).toEqual(["a"]);
  });
});

describe("a reconcile that never ends", () => {
  it("is reported again and again, shows in stats, and holds nobody else up", async () => {
    const time = manualTime();
    const stuck: [string, number][] = [];
    const { queue, started } = setUp(
      (key) => (key === "stuck" ? new Promise(() => {}) : Promise.resolve(done())),
      {
        concurrency: 2,
        stuckAfterMs: 1000,
        hooks: { onStuck: (key, runMs) => void stuck.push([key, runMs]) },
      },
      time,
    );
    queue.add("stuck");
    queue.add("other");
    await time.pass(2500);
    expect(started).toEqual(["stuck", "other"]);
    expect(stuck).toEqual([
      ["stuck", 1000],
      ["stuck", 2000],
    ]);
    expect(queue.stats().running).toEqual([{ key: "stuck", runMs: 2500 }]);
  });
});

describe("drain", () => {
  it("finishes what runs, starts nothing more and leaves no timer", async () => {
    const { runs, reconcile } = held();
    const { queue, started, time } = setUp(reconcile);
    queue.add("a");
    queue.add("b");
    queue.addAfter("c", 10);
    await settle();
    const drained = queue.drain(5000);
    queue.add("d");
    queue.addAfter("e", 1);
    await time.pass(100);
    expect(runs[0]!.context.signal.aborted).toBe(false);
    runs[0]!.end(again(0));
    expect(await drained).toEqual([]);
    await time.pass(10_000);
    expect(started).toEqual(["a"]);
    expect(time.pendingTimers()).toBe(0);
  });

  it("names what did not finish in time, and aborts it", async () => {
    const { runs, reconcile } = held();
    const { queue, time } = setUp(reconcile, { concurrency: 2 });
    queue.add("a");
    queue.add("b");
    await settle();
    const drained = queue.drain(5000);
    runs[0]!.end(done());
    await time.pass(5000);
    expect(await drained).toEqual(["b"]);
    expect(runs[1]!.context.signal.aborted).toBe(true);
  });

  it("is at once when nothing runs", async () => {
    const { queue } = setUp(immediately);
    queue.add("a");
    expect(await queue.drain(5000)).toEqual([]);
  });
});

it.each([0, -1, 1.5, Number.NaN])("refuses a concurrency of %d", (concurrency) => {
  expect(() => setUp(immediately, { concurrency })).toThrow(
    `concurrency must be a whole number from 1, not ${concurrency}`,
  );
});
