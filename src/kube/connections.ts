import { type buildConnector, type Dispatcher, Pool, ProxyAgent } from "undici";

import type { ConnectionOptions } from "node:tls";

import type { Credentials } from "./credentials.ts";

/**
 * The connections to the API server: one pool for calls, one for watches, so that a burst of events never stands in
 * the way of a write, and a reset of one does not take the other along. Over HTTP/2 each pool is a single connection
 * (an undici pool opens more only when the server refuses HTTP/2, as some proxies do, or when all streams are in use).
 * Why HTTP/2: docs/adr/0005-kube-transport.md.
 */
export type Lane = "calls" | "watches";

export interface Connections {
  lane(credentials: Credentials, lane: Lane): Dispatcher;
  /** Ends every connection, also those with calls under way. */
  destroy(): Promise<void>;
}

/**
 * An unanswered ping ends the connection at the next one, so a connection through which nothing comes any more is found
 * within two intervals. TCP alone never tells: nothing is being sent on a watch.
 */
export const PING_INTERVAL_MS = 5000;

/** undici closes an idle connection after 4 s by default: a minute's tick would begin with a TLS handshake. */
const KEEP_ALIVE_MS = 600_000;
/** Over HTTP/1.1 we must be the first to close: the API server does so after 90 s, maybe while we are writing. */
const KEEP_ALIVE_MAX_MS = 60_000;
const CONNECT_TIMEOUT_MS = 5000;
const MAX_CONNECTIONS = 64;

type Lanes = Record<Lane, Dispatcher>;

export function createConnections(): Connections {
  let current: { identity: string; lanes: Lanes } | undefined;
  const retired = new Set<Dispatcher>();

  function retire(lanes: Lanes): void {
    for (const dispatcher of Object.values(lanes)) {
      retired.add(dispatcher);
      // What is under way may finish; close() waits for it.
      void dispatcher.close().finally(() => retired.delete(dispatcher));
    }
  }

  return {
    lane(credentials, lane) {
      if (current?.identity !== credentials.identity) {
        if (current !== undefined) retire(current.lanes);
        current = { identity: credentials.identity, lanes: openLanes(credentials) };
      }
      return current.lanes[lane];
    },
    async destroy() {
      const open = [...retired, ...Object.values(current?.lanes ?? {})];
      current = undefined;
      await Promise.all(open.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

function openLanes(credentials: Credentials): Lanes {
  const open = credentials.proxy === undefined ? openPool : openProxied;
  return { calls: open(credentials), watches: open(credentials) };
}

function openPool({ origin, tls }: Credentials): Dispatcher {
  const plain = origin.startsWith("http:");
  return new Pool(origin, {
    connections: MAX_CONNECTIONS,
    connect: connectOptions({ ...tls, keepAlive: true, preferH2: true }),
    keepAliveTimeout: plain ? KEEP_ALIVE_MAX_MS : KEEP_ALIVE_MS,
    allowH2: !plain,
    // A pipelined write would wait behind somebody else's answer, and be lost with it.
    pipelining: 1,
    h2Options: { pingInterval: PING_INTERVAL_MS, maxConcurrentStreams: 100 },
  });
}

function openProxied({ proxy, tls }: Credentials): Dispatcher {
  return new ProxyAgent({
    uri: proxy as string,
    requestTls: connectOptions({ ...tls, preferH2: true }),
    connect: connectOptions({ keepAlive: true }),
    connections: MAX_CONNECTIONS,
    keepAliveTimeout: KEEP_ALIVE_MAX_MS,
    pipelining: 1,
    h2Options: { pingInterval: PING_INTERVAL_MS, maxConcurrentStreams: 100 },
  });
}

/** undici's type allows no undefined where Node's TLS options have it. */
function connectOptions(options: ConnectionOptions & { keepAlive?: boolean; preferH2?: boolean }) {
  return { ...options, timeout: CONNECT_TIMEOUT_MS } as buildConnector.BuildOptions;
}
