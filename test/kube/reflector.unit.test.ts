import { describe, expect, it } from "vitest";

import { errorOfStatus } from "../../src/kube/errors.ts";
import { createReflector, type ReflectorHealth } from "../../src/kube/reflector.ts";
import type { KubeObject } from "../../src/kube/resources.ts";
import type { KubeClient, WatchRequest } from "../../src/kube/verbs.ts";
import { manualTime, settle } from "../controller/manual-time.ts";
import { configMaps } from "./support.ts";

type Watch = (request: WatchRequest<KubeObject>) => Promise<void>;

const expired = errorOfStatus("watch", { code: 410, reason: "Expired" });

/** A reflector against a server of which only list and watch are scripted. */
function setUp(watch: Watch, list: () => unknown = () => undefined) {
  const time = manualTime();
  const lists: number[] = [];
  const watches: number[] = [];
  const troubles: ReflectorHealth[] = [];
  const recovered: ReflectorHealth[] = [];
  const client: Pick<KubeClient, "list" | "watch"> = {
    async list() {
      lists.push(time.clock.monotonic());
      const error = list();
      if (error !== undefined) throw error as Error;
      return { items: [], resourceVersion: "1" };
    },
    async watch(_type, request) {
      watches.push(time.clock.monotonic());
      await watch(request as never);
    },
  };
  const reflector = createReflector({
    client,
    type: configMaps,
    ...time,
    random: () => 1,
    onTrouble: (health) => void troubles.push(health),
    onRecovered: (health) => void recovered.push(health),
  });
  reflector.start();
  return { reflector, time, lists, watches, troubles, recovered };
}

const untilAborted = ({ signal }: WatchRequest<KubeObject>): Promise<void> =>
  new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(new Error("aborted")));
  });

describe("backing off", () => {
  it("a watch that the server ends at once is not opened over and over", async () => {
    const { reflector, time, watches, troubles } = setUp(({ onOpen }) => {
      onOpen?.();
      return Promise.resolve();
    });
    await time.pass(20_000);
    expect(watches).toEqual([0, 200, 600, 1400, 3000, 6200, 11_200, 16_200]);
    expect(troubles.at(-1)?.lastError).toMatchObject({
      message: "the server ended the watch at once",
      consecutive: 8,
    });
    await reflector[Symbol.asyncDispose]();
  });

  it("nor are list and 410 repeated at full speed", async () => {
    const { reflector, time, lists } = setUp(() => Promise.reject(expired));
    await time.pass(10_000);
    expect(lists).toEqual([0, 200, 600, 1400, 3000, 6200]);
    await reflector[Symbol.asyncDispose]();
  });

  it("starts anew after a watch that brought something", async () => {
    let opened = 0;
    const { reflector, time, watches } = setUp(({ onEvent }) => {
      opened++;
      if (opened === 4) {
        onEvent({ type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } });
      }
      return Promise.reject(new Error("broken"));
    });
    await time.pass(3000);
    expect(watches).toEqual([0, 200, 600, 1400, 1600, 2000, 2800]);
    await reflector[Symbol.asyncDispose]();
  });

  it("waits as long as the server asks for", async () => {
    const busy = errorOfStatus("list", { code: 429, details: { retryAfterSeconds: 30 } });
    let asked = 0;
    const { reflector, time, lists } = setUp(untilAborted, () => (++asked < 2 ? busy : undefined));
    await time.pass(60_000);
    expect(lists).toEqual([0, 30_000]);
    await reflector[Symbol.asyncDispose]();
  });

  it("ends at once when disposed in the middle of a wait, and leaves no timer", async () => {
    const { reflector, time, lists } = setUp(untilAborted, () => new Error("down"));
    await settle();
    await reflector[Symbol.asyncDispose]();
    expect(time.pendingTimers()).toBe(0);
    await time.pass(60_000);
    expect(lists).toEqual([0]);
  });
});

describe("health", () => {
  it("names the trouble, counts it, and clears it with the first success", async () => {
    let down = true;
    const { reflector, time, troubles, recovered } = setUp(untilAborted, () =>
      down ? errorOfStatus("list", { code: 403, message: "cannot list" }) : undefined,
    );
    await time.pass(700);
    expect(reflector.health()).toEqual({
      resource: "configmaps.v1",
      synced: false,
      watching: false,
      lastContact: -Infinity,
      lastError: { reason: "Forbidden", message: "cannot list", at: 600, consecutive: 3 },
    });
    expect(troubles).toHaveLength(3);
    down = false;
    await time.pass(2000);
    expect(recovered).toHaveLength(1);
    expect(reflector.health()).toMatchObject({ synced: true, lastContact: 1400 });
    expect(reflector.health().lastError).toBeUndefined();
    await reflector[Symbol.asyncDispose]();
  });

  it("a list counts as fresh from when it was sent", async () => {
    const answer = Promise.withResolvers<undefined>();
    const time = manualTime();
    const reflector = createReflector<KubeObject>({
      client: {
        async list() {
          await answer.promise;
          return { items: [], resourceVersion: "1" };
        },
        watch: (_type, request) => untilAborted(request as never),
      },
      type: configMaps,
      ...time,
    });
    await time.pass(1000);
    reflector.start();
    await time.pass(5000);
    answer.resolve(undefined);
    await reflector.synced();
    expect(reflector.store.freshAsOf()).toBe(1000);
    expect(reflector.health().lastContact).toBe(6000);
    await reflector[Symbol.asyncDispose]();
  });

  it("waiting for the first list can be given up", async () => {
    const { reflector } = setUp(untilAborted, () => new Error("down"));
    const abort = new AbortController();
    const waiting = reflector.synced(abort.signal);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(reflector.synced(abort.signal)).rejects.toThrow("enough");
    await reflector[Symbol.asyncDispose]();
  });
});
