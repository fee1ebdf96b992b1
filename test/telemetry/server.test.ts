import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHealth } from "../../src/telemetry/health.ts";
import type { Health } from "../../src/telemetry/health.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { createRedactor } from "../../src/telemetry/redact.ts";
import { startServer } from "../../src/telemetry/server.ts";
import type { TelemetryServer, TelemetryServerOptions } from "../../src/telemetry/server.ts";

const LOOPBACK = { host: "127.0.0.1", port: 0 };

let health: Health;
let server: TelemetryServer;

function start(options: Partial<TelemetryServerOptions> = {}): Promise<TelemetryServer> {
  return startServer({
    address: LOOPBACK,
    metrics: createMetrics({ processMetrics: false }),
    health,
    redact: createRedactor(["hush"]),
    ...options,
  });
}

beforeEach(async () => {
  health = createHealth();
  server = await start();
});
afterEach(() => server.close());

async function get(path: string, init?: RequestInit): Promise<{ status: number; body: string }> {
  const response = await fetch(server.url + path, init);
  return { status: response.status, body: await response.text() };
}

describe("probes", () => {
  it("answer a plain ok while everything is well", async () => {
    health.set("crd", { ok: true });
    expect(await get("/readyz")).toEqual({ status: 200, body: "ok" });
    expect(await get("/livez")).toEqual({ status: 200, body: "ok" });
  });

  it("readiness fails by its checks and names each with its reason; liveness stays", async () => {
    health.set("crd", { ok: true });
    health.set("redis-quorum", { ok: false, reason: "2 of 5 nodes answer,\nlast: Bearer hush" });
    const body =
      "[+]crd ok\n[-]redis-quorum failed: 2 of 5 nodes answer, last: Bearer ***\nreadyz check failed\n";
    expect(await get("/readyz")).toEqual({ status: 503, body });
    expect(await get("/readyz?verbose")).toEqual({ status: 503, body });
    expect(await get("/livez")).toEqual({ status: 200, body: "ok" });
  });

  it("are verbose on request", async () => {
    health.set("crd", { ok: true });
    health.set("redis-quorum", { ok: true, reason: "5 of 5 nodes answer" });
    expect(await get("/readyz?verbose")).toEqual({
      status: 200,
      body: "[+]crd ok\n[+]redis-quorum ok: 5 of 5 nodes answer\nreadyz check passed\n",
    });
  });

  it("can leave checks out", async () => {
    health.set("crd", { ok: true });
    health.set("membership", { ok: false });
    expect(await get("/readyz?exclude=membership&verbose=1")).toEqual({
      status: 200,
      body: "[+]crd ok\n[+]membership excluded: ok\nreadyz check passed\n",
    });
  });

  it("liveness fails by its own checks", async () => {
    health.watch("pulse", "livez", () => ({ ok: false, reason: "no pulse for 70 s" }));
    expect(await get("/livez")).toEqual({
      status: 503,
      body: "[-]pulse failed: no pulse for 70 s\nlivez check failed\n",
    });
    expect((await get("/readyz")).status).toBe(200);
  });
});

describe("requests", () => {
  it("get metrics in the text format of Prometheus", async () => {
    const response = await fetch(`${server.url}/metrics`);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(await response.text()).toContain("# TYPE lockedcron_ticks_launched_total counter");
  });

  it("HEAD answers without a body", async () => {
    const response = await fetch(`${server.url}/readyz`, { method: "HEAD" });
    expect([
      response.status,
      response.headers.get("content-length"),
      await response.text(),
    ]).toEqual([200, "2", ""]);
  });

  it.each(["/", "/metrics/", "/readyz/crd", "/favicon.ico", "//readyz", "/%00"])(
    "to %s find nothing, and are told what there is",
    async (path) => {
      expect(await get(path)).toEqual({
        status: 404,
        body: "not found; there is /livez, /metrics, /readyz\n",
      });
    },
  );

  it.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])(
    "by %s are not allowed",
    async (method) => {
      const response = await fetch(`${server.url}/metrics`, { method });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      await response.text();
    },
  );

  it("a failure to collect metrics is a 500 without its details, and is reported", async () => {
    const errors: Error[] = [];
    const metrics = { contentType: "text/plain", text: () => Promise.reject(new Error("hush")) };
    await using broken = await start({ metrics, onError: (error) => errors.push(error) });
    const response = await fetch(`${broken.url}/metrics`);
    expect([response.status, await response.text()]).toEqual([
      500,
      "internal error; see the log\n",
    ]);
    expect(errors).toMatchObject([{ message: "hush" }]);
  });

  it("garbage is refused and does no harm", async () => {
    const socket = await dial();
    const end = once(socket, "close");
    socket.write("\u0000\u0001 garbage\r\n\r\n");
    socket.resume();
    await end;
    expect((await get("/livez")).status).toBe(200);
  });
});

function dial(to: TelemetryServer = server): Promise<Socket> {
  const socket = connect(to.address.port, "127.0.0.1");
  socket.on("error", () => {});
  return new Promise((resolve) => socket.once("connect", () => resolve(socket)));
}

describe("connections", () => {
  it("one whose request never gets to its end is cut off", { timeout: 20_000 }, async () => {
    await using strict = await start({ headersTimeoutMs: 300 });
    const socket = await dial(strict);
    const closed = once(socket, "close");
    let answer = "";
    socket.on("data", (chunk) => (answer += String(chunk)));
    socket.write("GET /livez HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    const drip = setInterval(() => socket.write("a"), 100);
    await closed;
    clearInterval(drip);
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
  });

  it("silent ones do not keep it from closing", async () => {
    const sockets = [await dial(), await dial()];
    const ended = sockets.map((socket) => once(socket.resume(), "close"));
    await server.close();
    await Promise.all(ended);
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow("fetch failed");
  });

  it("an answer that never comes does not keep it from closing", async () => {
    const asked = Promise.withResolvers<void>();
    const text = (): Promise<string> => {
      asked.resolve();
      return new Promise(() => {});
    };
    const hung = await start({ metrics: { contentType: "text/plain", text } });
    const close = asked.promise.then(() => hung.close());
    const [request] = await Promise.allSettled([fetch(`${hung.url}/metrics`), close]);
    expect(request).toMatchObject({ status: "rejected" });
  });

  it("closing twice is as good as once", async () => {
    await server.close();
    await expect(server.close()).resolves.toBeUndefined();
  });
});

describe("address", () => {
  it("that is taken gives an error that names it and the way out", async () => {
    const address = { host: "127.0.0.1", port: server.address.port };
    await expect(start({ address })).rejects.toThrow(
      `cannot serve metrics and health on 127.0.0.1:${address.port} (listen EADDRINUSE`,
    );
    await expect(start({ address })).rejects.toThrow("--bind-address");
  });

  it("that this machine does not have gives the same", async () => {
    await expect(start({ address: { host: "192.0.2.1", port: 0 } })).rejects.toThrow(
      "cannot serve metrics and health on 192.0.2.1:0 (listen EADDRNOTAVAIL",
    );
  });

  it("without a host means every address", async () => {
    await using every = await start({ address: { port: 0 } });
    expect((await fetch(`${every.url}/livez`)).status).toBe(200);
  });
});
