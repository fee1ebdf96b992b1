import { once } from "node:events";
import { constants, createSecureServer, type Http2SecureServer } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { systemClock, systemTimers } from "../../src/clock.ts";
import type { KubeError } from "../../src/kube/errors.ts";
import {
  type Answer,
  exchange,
  type ExchangeRequest,
  type ExchangeTime,
} from "../../src/kube/exchange.ts";
import type { KeyPair } from "../cluster/certs.ts";
import { failureOf } from "./support.ts";
import { newCertificates } from "./tls-pair.ts";

const time = { clock: systemClock, timers: systemTimers };

function requestTo(origin: string, over: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return {
    action: "create things",
    method: "POST",
    path: "/things",
    origin,
    headers: { "content-type": "application/json" },
    body: Buffer.from("{}"),
    deadline: systemClock.monotonic() + 5000,
    ...over,
  };
}

describe("over HTTP/2", () => {
  let pair: KeyPair;
  let folder: Awaited<ReturnType<typeof newCertificates>>;

  beforeAll(async () => {
    folder = await newCertificates();
    pair = await folder.certificates.issue("server", { user: "server", hosts: ["127.0.0.1"] });
  });
  afterAll(() => folder[Symbol.asyncDispose]());

  /** A server that refuses the first stream, as one that is shutting down may, and takes the others. */
  async function refusingServer() {
    let streams = 0;
    const server: Http2SecureServer = createSecureServer({ cert: pair.cert, key: pair.key });
    server.on("stream", (stream) => {
      streams++;
      stream.on("error", () => undefined);
      if (streams === 1) {
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        return;
      }
      stream.respond({ ":status": 201, "content-type": "application/json" });
      stream.end("{}");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const pool = new Pool(origin, { allowH2: true, connect: { ca: folder.certificates.ca } });
    return {
      origin,
      pool,
      streams: () => streams,
      async [Symbol.asyncDispose]() {
        await pool.destroy();
        server.close();
      },
    };
  }

  it("undici by itself sends a refused POST a second time", async () => {
    await using server = await refusingServer();
    const answer = await server.pool.request({ path: "/things", method: "POST", body: "{}" });
    expect(answer.statusCode).toBe(201);
    expect(server.streams()).toBe(2);
  });

  it("we do not: the second start is refused before a byte is written", async () => {
    await using server = await refusingServer();
    const failure = await failureOf(exchange(server.pool, requestTo(server.origin), time));
    expect(failure).toMatchObject({ status: 0, reason: "ConnectionLost", outcome: "unknown" });
    expect(server.streams()).toBe(1);
    // The connection is of use afterwards.
    const next = await exchange(server.pool, requestTo(server.origin), time);
    expect(next.status).toBe(201);
    expect(server.streams()).toBe(2);
  });
});

describe("over HTTP/1.1", () => {
  /** A server of bytes: `serve` gets each connection; the requests seen are counted. */
  async function byteServer(serve: (socket: Socket, request: number) => void) {
    const paths: string[] = [];
    const sockets = new Set<Socket>();
    const server: Server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("data", (chunk) => {
        const path = /^POST (\S+) HTTP/u.exec(chunk.toString())?.[1];
        if (path === undefined) return;
        paths.push(path);
        serve(socket, paths.length);
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const pool = new Pool(origin, { connections: 1, pipelining: 1 });
    return {
      send: (over: Partial<ExchangeRequest> = {}, at: ExchangeTime = time): Promise<Answer> =>
        exchange(pool, requestTo(origin, over), at),
      paths: () => paths,
      requests: () => paths.length,
      async [Symbol.asyncDispose]() {
        await pool.destroy();
        for (const socket of sockets) socket.destroy();
        server.close();
      },
    };
  }

  const OK =
    "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

  it("gives the whole answer, whatever its status", async () => {
    await using server = await byteServer((socket) => {
      socket.write("HTTP/1.1 409 Conflict\r\nretry-after: 7\r\ncontent-length: 5\r\n\r\nhel");
      setImmediate(() => socket.write("lo"));
    });
    const answer = await server.send();
    expect(answer.status).toBe(409);
    expect(answer.headers["retry-after"]).toBe("7");
    expect(answer.body.toString()).toBe("hello");
  });

  it("skips interim answers", async () => {
    await using server = await byteServer((socket) => {
      socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${OK}`);
    });
    expect(await server.send()).toMatchObject({ status: 201 });
  });

  it.each([
    ["closes without an answer", (socket: Socket) => socket.end()],
    ["resets", (socket: Socket) => socket.resetAndDestroy()],
    ["cuts its answer short", (socket: Socket) => socket.end(OK.slice(0, -1))],
    ["answers garbage", (socket: Socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n")],
  ])("a server that %s leaves the outcome unknown, and gets nothing twice", async (_how, act) => {
    await using server = await byteServer((socket, request) => {
      if (request === 1) act(socket);
      else socket.write(OK);
    });
    expect(await failureOf(server.send())).toMatchObject({
      status: 0,
      reason: "ConnectionLost",
      outcome: "unknown",
      action: "create things",
    });
    expect((await server.send()).status).toBe(201);
    expect(server.requests()).toBe(2);
  });

  it("a kept connection that the server closes meanwhile costs a call, but none is sent twice", async () => {
    await using server = await byteServer((socket) => {
      socket.write(OK, () => socket.resetAndDestroy());
    });
    for (let i = 0; i < 20; i++) {
      const call = server.send({ path: `/things/${i}` });
      const told = await call.then(
        ({ status }) => status,
        (error: unknown) => (error as KubeError).reason,
      );
      expect([201, "ConnectionLost"]).toContain(told);
    }
    expect(server.paths()).toEqual([...new Set(server.paths())]);
  });

  it("no answer by the deadline: unknown, and the connection is not used for the next call", async () => {
    await using server = await byteServer((socket, request) => {
      if (request > 1) socket.write(OK);
    });
    const deadline = systemClock.monotonic() + 50;
    expect(await failureOf(server.send({ deadline }))).toMatchObject({
      reason: "DeadlineExceeded",
      outcome: "unknown",
    });
    expect((await server.send()).status).toBe(201);
  });

  it("what waits for a connection until its deadline is never sent: rejected", async () => {
    const first = Promise.withResolvers<Socket>();
    await using server = await byteServer((socket, request) => {
      if (request === 1) first.resolve(socket);
      else socket.write(OK);
    });
    const holder = server.send();
    const socket = await first.promise;
    const queued = server.send({ deadline: systemClock.monotonic() + 50, path: "/queued" });
    expect(await failureOf(queued)).toMatchObject({
      reason: "DeadlineExceeded",
      outcome: "rejected",
    });
    socket.write(OK);
    await holder;
    await server.send();
    expect(server.requests()).toBe(2);
  });

  it("a deadline that passed while this process was stopped is noticed before the first byte", async () => {
    const first = Promise.withResolvers<Socket>();
    await using server = await byteServer((socket, request) => {
      if (request === 1) first.resolve(socket);
      else socket.write(OK);
    });
    const holder = server.send();
    const socket = await first.promise;
    // The timer of the queued call never rings, as when SIGCONT finds the socket ready first.
    let now = systemClock.monotonic();
    const stopped = {
      clock: { now: () => Date.now(), monotonic: () => now },
      timers: { after: () => () => undefined },
    };
    const queued = failureOf(server.send({ deadline: now + 1000 }, stopped));
    now += 5000;
    socket.write(OK);
    await holder;
    expect(await queued).toMatchObject({
      reason: "DeadlineExceeded",
      outcome: "rejected",
    });
    await server.send();
    expect(server.requests()).toBe(2);
  });

  it("an aborted call: rejected before it is sent, unknown after", async () => {
    const arrived = Promise.withResolvers<void>();
    await using server = await byteServer(() => arrived.resolve());
    expect(await failureOf(server.send({ signal: AbortSignal.abort() }))).toMatchObject({
      reason: "Aborted",
      outcome: "rejected",
    });
    const abort = new AbortController();
    const call = failureOf(server.send({ signal: abort.signal }));
    await arrived.promise;
    abort.abort();
    expect(await call).toMatchObject({ reason: "Aborted", outcome: "unknown" });
    expect(server.requests()).toBe(1);
  });
});
