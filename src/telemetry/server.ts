import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createRedactor } from "./redact.ts";
import type { Redactor } from "./redact.ts";
import type { Health, NamedCheck, Probe } from "./health.ts";
import type { Metrics } from "./metrics.ts";

export interface TelemetryServerOptions {
  /** Port 0 takes any free one; no host means every address of the machine. */
  address: { host?: string; port: number };
  metrics: Pick<Metrics, "text" | "contentType">;
  health: Pick<Health, "report">;
  redact?: Redactor;
  /** How long the head of a request may take; default 5,000. */
  headersTimeoutMs?: number;
  /** Faults of a single request or connection; the server goes on. */
  onError?: (error: Error) => void;
}

export interface TelemetryServer extends AsyncDisposable {
  readonly address: { host: string; port: number };
  /** With a host that a client of this machine can dial. */
  readonly url: string;
  /** Stops at once: answers in flight may end within a second, idle connections are closed. */
  close(): Promise<void>;
}

// Probes and scrapes are tiny requests from near by. Whoever is slower holds a socket on purpose.
const HEADERS_TIMEOUT_MS = 5_000;
const BODY_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 30_000;
const CLOSE_GRACE_MS = 1_000;
const MAX_CONNECTIONS = 256;
const PATHS = ["/livez", "/metrics", "/readyz"] as const;

interface Answer {
  status: number;
  body: string;
  type?: string;
}

const TEXT = "text/plain; charset=utf-8";

/** The format that the health endpoints of Kubernetes' own servers have, with our reasons in it. */
function probeAnswer(
  probe: Probe,
  checks: NamedCheck[],
  query: URLSearchParams,
  redact: Redactor,
): Answer {
  const excluded = new Set(query.getAll("exclude"));
  const counted = checks.filter((check) => !excluded.has(check.name));
  const passed = counted.every((check) => check.ok);
  if (passed && !query.has("verbose")) return { status: 200, body: "ok" };

  const lines = checks.map(({ name, ok, reason }) => {
    if (excluded.has(name)) return `[+]${name} excluded: ok`;
    const why = reason === undefined ? undefined : redact.text(reason).replaceAll(/\s+/g, " ");
    if (ok) return `[+]${name} ok${why === undefined ? "" : `: ${why}`}`;
    return `[-]${name} failed: ${why ?? "no reason given"}`;
  });
  const verdict = `${probe} check ${passed ? "passed" : "failed"}`;
  return { status: passed ? 200 : 503, body: [...lines, verdict, ""].join("\n") };
}

/**
 * Serves /metrics, /livez and /readyz. Rejects when the address cannot be bound, naming it and the
 * setting to change.
 */
export async function startServer(options: TelemetryServerOptions): Promise<TelemetryServer> {
  const { metrics, health, redact = createRedactor(), onError = () => {} } = options;
  const { headersTimeoutMs = HEADERS_TIMEOUT_MS } = options;

  async function answer(request: IncomingMessage): Promise<Answer> {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    switch (path) {
      case "/metrics":
        return { status: 200, body: await metrics.text(), type: metrics.contentType };
      case "/livez":
      case "/readyz": {
        const probe = path === "/livez" ? "livez" : "readyz";
        return probeAnswer(probe, health.report(probe), new URLSearchParams(query), redact);
      }
      default:
        return { status: 404, body: `not found; there is ${PATHS.join(", ")}\n` };
    }
  }

  function send(
    request: IncomingMessage,
    response: ServerResponse,
    { status, body, type }: Answer,
  ) {
    response.writeHead(status, {
      "content-type": type ?? TEXT,
      "content-length": Buffer.byteLength(body),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    response.end(request.method === "HEAD" ? undefined : body);
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      // The body of a refused request is not read, so its connection cannot be used again.
      response.setHeader("connection", "close");
      send(request, response, { status: 405, body: "method not allowed; use GET or HEAD\n" });
      return;
    }
    answer(request).then(
      (found) => send(request, response, found),
      (error: unknown) => {
        onError(error instanceof Error ? error : new Error(String(error)));
        send(request, response, { status: 500, body: "internal error; see the log\n" });
      },
    );
  }

  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: headersTimeoutMs + BODY_TIMEOUT_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: 8_192,
    },
    handle,
  );
  server.maxConnections = MAX_CONNECTIONS;
  // A socket that neither sends nor reads is dropped, also in the middle of an answer.
  server.setTimeout(IDLE_TIMEOUT_MS, (socket) => socket.destroy());

  async function close(): Promise<void> {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const force = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
    await closed;
    clearTimeout(force);
  }

  const { host, port } = await listen(server, options.address);
  server.on("error", onError);
  const dialled = host === "::" || host === "0.0.0.0" ? "127.0.0.1" : host;
  const url = `http://${dialled.includes(":") ? `[${dialled}]` : dialled}:${port}`;
  return { address: { host, port }, url, close, [Symbol.asyncDispose]: close };
}

async function listen(
  server: ReturnType<typeof createServer>,
  wanted: { host?: string; port: number },
): Promise<{ host: string; port: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ ...wanted }, resolve);
  try {
    await promise;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `cannot serve metrics and health on ${wanted.host ?? ""}:${wanted.port} (${why}); ` +
        "choose another --bind-address, e.g. 127.0.0.1:8081",
      { cause },
    );
  }
  server.off("error", reject);
  const { address, port } = server.address() as AddressInfo;
  return { host: address, port };
}
