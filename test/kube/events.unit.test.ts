import { describe, expect, it } from "vitest";

import { errorOfStatus, KubeError } from "../../src/kube/errors.ts";
import { createEventRecorder, type EventRecorderOptions } from "../../src/kube/events.ts";
import type { CoreEvent } from "../../src/kube/event-series.ts";
import type { KubeObject } from "../../src/kube/resources.ts";
import { manualTime, settle } from "../controller/manual-time.ts";

const job: KubeObject = {
  apiVersion: "lockedcron.io/v1alpha1",
  kind: "LockedCronJob",
  metadata: { name: "report", namespace: "team-a", uid: "u-1", resourceVersion: "7" },
};

type Write =
  { verb: "create"; event: CoreEvent } | { verb: "patch"; name: string; body: Partial<CoreEvent> };

/** A recorder whose writes are kept; `answer` may refuse one. */
function setUp(
  answer: (write: Write, count: number) => unknown = () => undefined,
  options: Partial<EventRecorderOptions> = {},
) {
  const time = manualTime();
  const writes: Write[] = [];
  async function write(one: Write): Promise<never> {
    writes.push(structuredClone(one));
    const error = await answer(one, writes.length);
    if (error !== undefined) throw error as Error;
    return undefined as never;
  }
  const recorder = createEventRecorder({
    component: "lockedcron",
    instance: "replica-1",
    ...time,
    client: {
      create: (_type, object) => write({ verb: "create", event: object as never }),
      patch: (_type, { name }, { body }) => write({ verb: "patch", name, body: body as never }),
    },
    ...options,
  });
  return { recorder, writes, time };
}

const lost = new KubeError({
  action: "create events",
  status: 0,
  reason: "ConnectionLost",
  message: "lost",
  outcome: "unknown",
});

describe("while something more urgent goes on", () => {
  const event = (recorder: ReturnType<typeof setUp>["recorder"], i: number): void =>
    recorder.event(job, "Normal", "SuccessfulCreate", `Created job ${i}`);

  it("events wait, and are written soon after", async () => {
    let busy = true;
    const { recorder, writes, time } = setUp(undefined, { busy: () => busy });
    for (let i = 0; i < 3; i++) event(recorder, i);
    await time.pass(10_000);
    expect([writes.length, recorder.stats().queued]).toEqual([0, 3]);
    busy = false;
    await time.pass(250);
    expect([writes.length, time.pendingTimers()]).toEqual([3, 0]);
  });

  it("they are written all the same before there are so many that some would be dropped", async () => {
    const { recorder, writes } = setUp(undefined, { busy: () => true, queueLimit: 10 });
    for (let i = 0; i < 10; i++) event(recorder, i);
    await settle();
    expect([writes.length, recorder.stats()]).toEqual([5, expect.objectContaining({ dropped: 0 })]);
  });

  it("and when the process ends", async () => {
    const { recorder, writes } = setUp(undefined, { busy: () => true });
    event(recorder, 1);
    await settle();
    await recorder.flush(1_000);
    expect(writes).toHaveLength(1);
    event(recorder, 2);
    await recorder[Symbol.asyncDispose]();
  });
});

describe("events", () => {
  it("have the fields that kubectl shows, as CronJob's", async () => {
    const { recorder, writes } = setUp();
    recorder.event(job, "Normal", "SuccessfulCreate", "Created job report-29454240");
    await settle();
    expect(writes).toEqual([
      {
        verb: "create",
        event: {
          apiVersion: "v1",
          kind: "Event",
          metadata: { name: expect.stringMatching(/^report\.[0-9a-f]+$/), namespace: "team-a" },
          involvedObject: {
            apiVersion: "lockedcron.io/v1alpha1",
            kind: "LockedCronJob",
            name: "report",
            namespace: "team-a",
            uid: "u-1",
            resourceVersion: "7",
          },
          reason: "SuccessfulCreate",
          message: "Created job report-29454240",
          type: "Normal",
          source: { component: "lockedcron" },
          reportingComponent: "lockedcron",
          reportingInstance: "replica-1",
          firstTimestamp: "2026-01-01T00:00:00Z",
          lastTimestamp: "2026-01-01T00:00:00Z",
          count: 1,
        },
      },
    ]);
    expect(recorder.stats()).toEqual({ queued: 0, written: 1, merged: 0, dropped: 0 });
  });

  it("do not hold up whoever records them", () => {
    const { recorder, writes } = setUp();
    recorder.event(job, "Normal", "A", "a");
    expect(writes).toEqual([]);
  });

  it("are counted when they repeat, and written at most once a second", async () => {
    const { recorder, writes, time } = setUp();
    for (let i = 0; i < 5; i++) {
      recorder.event(job, "Warning", "FailedCreate", "quota");
      await time.pass(100);
    }
    await time.pass(1000);
    const [created, ...patches] = writes;
    expect(created).toMatchObject({ verb: "create", event: { count: 1 } });
    expect(patches).toEqual([
      {
        verb: "patch",
        name: created?.verb === "create" ? created.event.metadata.name : "",
        body: { count: 5, lastTimestamp: "2026-01-01T00:00:00Z", message: "quota" },
      },
    ]);
    expect(recorder.stats()).toMatchObject({ written: 2, merged: 4, dropped: 0 });
  });

  it("that repeat while one is being written are not lost", async () => {
    const first = Promise.withResolvers<undefined>();
    const { recorder, writes, time } = setUp((_write, count) =>
      count === 1 ? first.promise : undefined,
    );
    recorder.event(job, "Warning", "A", "a");
    await settle();
    recorder.event(job, "Warning", "A", "a");
    await time.pass(5000);
    expect(writes).toHaveLength(1);
    first.resolve(undefined);
    await time.pass(5000);
    expect(writes[1]).toMatchObject({ verb: "patch", body: { count: 2 } });
  });

  it("begin anew after ten quiet minutes", async () => {
    const { recorder, writes, time } = setUp();
    recorder.event(job, "Normal", "A", "a");
    await time.pass(600_000);
    recorder.event(job, "Normal", "A", "a");
    await settle();
    expect(writes.map(({ verb }) => verb)).toEqual(["create", "create"]);
  });

  it("that differ in object, type, reason or message are different events", async () => {
    const { recorder, writes } = setUp();
    const other = { ...job, metadata: { ...job.metadata, uid: "u-2" } };
    recorder.event(job, "Normal", "A", "a");
    recorder.event(other, "Normal", "A", "a");
    recorder.event(job, "Warning", "A", "a");
    recorder.event(job, "Normal", "B", "a");
    recorder.event(job, "Normal", "A", "b");
    await settle();
    const names = writes.map((write) => (write.verb === "create" ? write.event.metadata.name : ""));
    expect(new Set(names).size).toBe(5);
  });

  it("that differ only in their message are put together beyond ten", async () => {
    const { recorder, writes, time } = setUp();
    for (let i = 1; i <= 30; i++) {
      recorder.event(job, "Normal", "SuccessfulCreate", `Created job report-${i}`);
      await time.pass(1000);
    }
    const created = writes.filter(({ verb }) => verb === "create");
    expect(created).toHaveLength(11);
    expect(created[10]).toMatchObject({
      event: { message: "(combined from similar events): Created job report-11" },
    });
    expect(writes.at(-1)).toMatchObject({
      verb: "patch",
      body: { count: 20, message: "(combined from similar events): Created job report-30" },
    });
  });

  it.each(["", "x", "xx"])("are cut to 1,024 bytes between two characters (%j)", async (start) => {
    const { recorder, writes } = setUp();
    recorder.event(job, "Normal", "A", start + "€".repeat(1000));
    await settle();
    const message = writes[0]?.verb === "create" ? writes[0].event.message : "";
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
    expect(message).toMatch(/^x*€+\.\.\.$/u);
    expect(message.length).toBeGreaterThan(340);
  });

  it("of an object without namespace go to default", async () => {
    const { recorder, writes } = setUp();
    recorder.event({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } }, "Normal", "A", "a");
    await settle();
    expect(writes[0]).toMatchObject({ event: { metadata: { namespace: "default" } } });
  });
});

describe("trouble with events", () => {
  it("an answer that is lost is asked for again, under the same name", async () => {
    const { recorder, writes, time } = setUp((_write, count) => {
      if (count === 1) return lost;
      return count === 2
        ? errorOfStatus("create events", { code: 409, reason: "AlreadyExists" })
        : undefined;
    });
    recorder.event(job, "Normal", "A", "a");
    await time.pass(10_000);
    expect(writes).toHaveLength(2);
    expect(writes[1]).toEqual(writes[0]);
    expect(recorder.stats()).toMatchObject({ written: 1, dropped: 0, queued: 0 });
  });

  it("an event that is gone is created anew", async () => {
    const { recorder, writes, time } = setUp(({ verb }) =>
      verb === "patch" ? errorOfStatus("patch events", { code: 404 }) : undefined,
    );
    recorder.event(job, "Normal", "A", "a");
    await time.pass(1000);
    recorder.event(job, "Normal", "A", "a");
    await time.pass(1000);
    expect(writes.map(({ verb }) => verb)).toEqual(["create", "patch", "create"]);
    expect(writes[2]).toMatchObject({ event: { count: 2 } });
  });

  it("what stays lost is dropped after three tries, and told", async () => {
    const dropped: string[][] = [];
    const { recorder, writes, time } = setUp(() => lost, {
      onDropped: (reason, message) => void dropped.push([reason, message]),
    });
    recorder.event(job, "Normal", "A", "a");
    await time.pass(60_000);
    expect(writes).toHaveLength(3);
    expect(dropped).toEqual([["A", "lost"]]);
    expect(recorder.stats()).toMatchObject({ dropped: 1, queued: 0 });
  });

  it("what the server refuses is dropped at once", async () => {
    const refused = errorOfStatus("create events", {
      code: 403,
      message: "namespace is terminating",
    });
    const { recorder, writes, time } = setUp(() => refused);
    recorder.event(job, "Normal", "A", "a");
    await time.pass(60_000);
    expect(writes).toHaveLength(1);
    expect(recorder.stats()).toMatchObject({ dropped: 1, queued: 0 });
  });

  it("beyond the limit of the queue they are dropped, and a broken hook harms nobody", async () => {
    const { recorder, writes, time } = setUp(() => new Promise(() => {}), {
      queueLimit: 10,
      onDropped() {
        throw new Error("broken hook");
      },
    });
    for (let i = 0; i < 25; i++) recorder.event(job, "Normal", `R${i}`, "a");
    await time.pass(60_000);
    expect(writes).toHaveLength(4);
    expect(recorder.stats()).toMatchObject({ queued: 10, dropped: 15 });
  });

  it("never throw, whatever is recorded", () => {
    const { recorder } = setUp();
    expect(() => recorder.event(undefined as never, "Normal", "A", "a")).not.toThrow();
    expect(() => recorder.event(job, "Normal", "A", undefined as never)).not.toThrow();
    expect(recorder.stats().dropped).toBe(2);
  });
});

describe("flush", () => {
  it("waits until all is written", async () => {
    const { recorder, writes, time } = setUp((_write, count) => (count === 1 ? lost : undefined));
    recorder.event(job, "Normal", "A", "a");
    recorder.event(job, "Normal", "B", "b");
    let flushed = false;
    const flush = recorder.flush(30_000).then(() => (flushed = true));
    await settle();
    expect(flushed).toBe(false);
    await time.pass(1000);
    await flush;
    expect(writes).toHaveLength(3);
    expect(time.pendingTimers()).toBe(0);
  });

  it("gives up in time", async () => {
    const { recorder, time } = setUp(() => new Promise(() => {}));
    recorder.event(job, "Normal", "A", "a");
    const flush = recorder.flush(5000);
    await time.pass(5000);
    await flush;
    expect(recorder.stats().queued).toBe(1);
  });

  it("is at once when there is nothing, and nothing is recorded after disposal", async () => {
    const { recorder, writes, time } = setUp();
    await recorder.flush(1000);
    await recorder[Symbol.asyncDispose]();
    recorder.event(job, "Normal", "A", "a");
    await time.pass(1000);
    expect(writes).toEqual([]);
  });
});
