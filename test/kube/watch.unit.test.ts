import type { ServerResponse } from "node:http";

import { describe, expect, it } from "vitest";

import { systemTimers, type Timers } from "../../src/clock.ts";
import { createKubeClient } from "../../src/kube/client.ts";
import type { KubeClient } from "../../src/kube/verbs.ts";
import { manualTime } from "../controller/manual-time.ts";
import { type FakeApi, refuse, startFakeApi } from "./fake-api.ts";
import { configMaps, failureOf } from "./support.ts";

const line = (type: string, name: string, filler = ""): string =>
  `${JSON.stringify({ type, object: { metadata: { name, resourceVersion: "5", annotations: { filler } } } })}\n`;

async function watching(
  serve: (response: ServerResponse) => void,
  test: (client: KubeClient, api: FakeApi) => Promise<void>,
): Promise<void> {
  await using api = await startFakeApi((_request, response) => serve(response));
  await using client = createKubeClient({ config: () => api.config() });
  await test(client, api);
}

function watch(client: KubeClient, options: { signal?: AbortSignal; silenceMs?: number } = {}) {
  const events: string[] = [];
  const ended = client.watch(configMaps, {
    resourceVersion: "4",
    timeoutSeconds: 300,
    onEvent: ({ type, object }) => void events.push(`${type} ${object.metadata.name}`),
    ...options,
  });
  return { events, ended };
}

describe("watch", () => {
  it("asks for bookmarks, from a version on, for a time", () =>
    watching(
      (response) => response.end(),
      async (client, api) => {
        await watch(client).ended;
        expect(api.requests).toEqual([
          "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=4&timeoutSeconds=300",
        ]);
      },
    ));

  it("finds events wherever the bytes are split, and many in one piece", () => {
    const text =
      line("ADDED", "ä") + line("MODIFIED", "b", "€".repeat(40_000)) + line("BOOKMARK", "c");
    const bytes = Buffer.from(text + line("DELETED", "d") + line("ADDED", "e"));
    return watching(
      (response) => {
        response.write(bytes.subarray(0, 1));
        let at = 1;
        const more = (): void => {
          const size = at < 200 ? 1 : 7001;
          const piece = bytes.subarray(at, at + size);
          at += size;
          if (piece.length === 0) response.end();
          else response.write(piece, more);
        };
        more();
      },
      async (client) => {
        const { events, ended } = watch(client);
        await ended;
        expect(events).toEqual(["ADDED ä", "MODIFIED b", "BOOKMARK c", "DELETED d", "ADDED e"]);
      },
    );
  });

  it("fails with the Status of an ERROR event", () =>
    watching(
      (response) => {
        const object = { kind: "Status", code: 410, reason: "Expired", message: "too old" };
        response.write(line("ADDED", "a") + JSON.stringify({ type: "ERROR", object }) + "\n");
      },
      async (client) => {
        const { events, ended } = watch(client);
        expect(await failureOf(ended)).toMatchObject({ status: 410, reason: "Expired" });
        expect(events).toEqual(["ADDED a"]);
      },
    ));

  it("fails with the Status of a refused start", () =>
    watching(
      (response) => {
        response.setHeader("retry-after", "2");
        refuse(response, 429, { message: "too many" });
      },
      async (client) => {
        expect(await failureOf(watch(client).ended)).toMatchObject({
          status: 429,
          retryAfterMs: 2000,
          message: "too many",
        });
      },
    ));

  it.each(["garbage\n", "{}\n", "null\n", '{"type":"ADDED"}\n', '{"type":"ADDED","object":{}}\n'])(
    "fails on %j",
    (text) =>
      watching(
        (response) => response.write(text),
        async (client) => {
          expect((await failureOf(watch(client).ended)).reason).toBe("BadAnswer");
        },
      ),
  );

  it("fails when the connection breaks", () =>
    watching(
      (response) => response.write(line("ADDED", "a"), () => response.socket?.resetAndDestroy()),
      async (client) => {
        const { events, ended } = watch(client);
        expect((await failureOf(ended)).reason).toBe("ConnectionLost");
        expect(events).toEqual(["ADDED a"]);
      },
    ));

  it("fails when nothing comes for too long, though the connection lives", () =>
    watching(
      (response) => response.write(line("ADDED", "a")),
      async (client) => {
        const failure = await failureOf(watch(client, { silenceMs: 300 }).ended);
        expect(failure.message).toContain("not even a bookmark");
      },
    ));

  it("any event or bookmark ends the silence", async () => {
    const answering = Promise.withResolvers<ServerResponse>();
    await using api = await startFakeApi((_request, response) => {
      response.flushHeaders();
      answering.resolve(response);
    });
    const time = manualTime();
    await using client = createKubeClient({ config: () => api.config(), ...time });
    let arrived = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    const ended = failureOf(
      client.watch(configMaps, {
        resourceVersion: "4",
        timeoutSeconds: 300,
        silenceMs: 30_000,
        onOpen: () => opened.resolve(),
        onEvent: () => arrived.resolve(),
      }),
    );
    const response = await answering.promise;
    await opened.promise;
    for (const type of ["BOOKMARK", "ADDED", "BOOKMARK"]) {
      await time.pass(29_000);
      arrived = Promise.withResolvers<void>();
      response.write(line(type, "a"));
      await arrived.promise;
    }
    await time.pass(32_000);
    expect((await ended).message).toContain("nothing came for 30 s");
  });

  it("ends when its caller aborts", () =>
    watching(
      (response) => response.write(line("ADDED", "a")),
      async (client) => {
        const abort = new AbortController();
        const ended = client.watch(configMaps, {
          resourceVersion: "4",
          timeoutSeconds: 300,
          signal: abort.signal,
          onEvent: () => abort.abort(),
        });
        expect((await failureOf(ended)).reason).toBe("Aborted");
      },
    ));

  it("takes nothing for news that lay in the socket while this process stood still", async () => {
    const answering = Promise.withResolvers<ServerResponse>();
    await using api = await startFakeApi((_request, response) => {
      response.write(line("ADDED", "before"));
      answering.resolve(response);
    });
    let standstill = 0;
    // Timers do not ring during a standstill: the beat that would notice comes after the socket is read.
    const timers: Timers = {
      after: (ms, fn) => systemTimers.after(ms, () => (standstill === 0 ? fn() : undefined)),
    };
    await using client = createKubeClient({
      config: () => api.config(),
      timers,
      clock: { now: () => Date.now(), monotonic: () => performance.now() + standstill },
    });
    const first = Promise.withResolvers<void>();
    const events: string[] = [];
    const ended = client.watch(configMaps, {
      resourceVersion: "4",
      timeoutSeconds: 300,
      onEvent({ object }) {
        events.push(object.metadata.name ?? "");
        first.resolve();
      },
    });
    await first.promise;
    standstill = 20_000;
    (await answering.promise).write(line("ADDED", "old news"));
    expect((await failureOf(ended)).message).toContain("stood still");
    expect(events).toEqual(["before"]);
  });
});
