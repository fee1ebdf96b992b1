import { type buildConnector, type Dispatcher, Pool, ProxyAgent } from "undici";

import type { ConnectionOptions } from "node:tls";

import type { Credentials } from "./credentials.ts";

/**
 * The connections to the API server, in two lanes, so that a burst of events never stands in the way of a write.
 *
 * Calls go over HTTP/1.1, one at a time on each of a few dozen connections that are kept: a connection that breaks takes
 * one call along, and nothing between us and the wire sends a call twice. Watches share one HTTP/2 connection, whose
 * pings find a black hole. The measurements and the defect of node:http2 behind this: docs/adr/0005-kube-transport.md.
 */
export type Lane = "calls" | "watches";

export interface Connections {
  lane(credentials: Credentials, lane: Lane): Dispatcher;
  /** A call got no answer on one of these: the next calls get new connections. What is under way may finish. */
  suspect(calls: Dispatcher): void;
  /** Ends every connection, also those with calls under way. */
  destroy(): Promise<void>;
}

/**
 * An unanswered ping ends the connection at the next one, so a connection through which nothing comes any more is found
 * within two intervals. TCP alone never tells: nothing is being sent on a watch.
 */
const PING_INTERVAL_MS = 5000;

/**
 * An idle connection is probed after this time, and given up after ten more seconds without an answer (Linux, libuv's
 * interval and count). It also keeps load balancers from forgetting the connection.
 */
const TCP_KEEP_ALIVE_MS = 5000;

/**
 * Longer than a minute, so that the next minute's ticks find the connections of the last; shorter than the 90 s after
 * which the API server closes one, maybe while we are writing to it.
 */
const IDLE_CALLS_MS = 80_000;
const IDLE_WATCHES_MS = 600_000;
const CONNECT_TIMEOUT_MS = 5000;

type Lanes = Record<Lane, Dispatcher>;

export function createConnections(maxCalls: number): Connections {
  let current: { credentials: Credentials; lanes: Lanes } | undefined;
  const retired = new Set<Dispatcher>();

  const openCalls = (credentials: Credentials): Dispatcher =>
    openLane(credentials, {
      connections: maxCalls,
      allowH2: false,
      keepAliveTimeout: IDLE_CALLS_MS,
    });

  const openWatches = (credentials: Credentials): Dispatcher =>
    openLane(credentials, {
      // Of use only to a server that refuses HTTP/2, where each watch takes a connection.
      connections: 64,
      allowH2: true,
      keepAliveTimeout: IDLE_WATCHES_MS,
      h2Options: { pingInterval: PING_INTERVAL_MS, maxConcurrentStreams: 100 },
    });

  function retire(dispatcher: Dispatcher): void {
    retired.add(dispatcher);
    // What is under way may finish; close() waits for it.
    void dispatcher.close().finally(() => retired.delete(dispatcher));
  }

  return {
    lane(credentials, lane) {
      if (current?.credentials.identity !== credentials.identity) {
        if (current !== undefined) Object.values(current.lanes).forEach(retire);
        current = {
          credentials,
          lanes: { calls: openCalls(credentials), watches: openWatches(credentials) },
        };
      }
      return current.lanes[lane];
    },
    suspect(calls) {
      if (current?.lanes.calls !== calls) return;
      current.lanes.calls = openCalls(current.credentials);
      retire(calls);
    },
    async destroy() {
      const all = [...retired, ...Object.values(current?.lanes ?? {})];
      current = undefined;
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

function openLane({ origin, tls, proxy }: Credentials, options: Pool.Options): Dispatcher {
  // A pipelined write would wait behind somebody else's answer, and be lost with it.
  const lane = { ...options, pipelining: 1 };
  const server = connectOptions({ ...tls, preferH2: options.allowH2 === true });
  if (proxy === undefined) return new Pool(origin, { ...lane, connect: server });
  return new ProxyAgent({ ...lane, uri: proxy, requestTls: server, connect: connectOptions({}) });
}

/** undici's type allows no undefined where Node's TLS options have it. */
function connectOptions(
  tls: ConnectionOptions & { preferH2?: boolean },
): buildConnector.BuildOptions {
  return {
    ...tls,
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  } as buildConnector.BuildOptions;
}
