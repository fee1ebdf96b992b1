import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What happens to bytes on their way; applies at once to open connections too. */
export interface ProxyFaults {
  /** Swallow what the server says: commands are executed, answers are lost. */
  dropReplies: boolean;
  /** Swallow what the client says. */
  dropRequests: boolean;
  /** Milliseconds that each chunk waits, per direction. */
  delayMs: number;
  /** The server's next chunk is replaced by this once. */
  garbage: string | null;
  /** New connections are closed at once. */
  refuse: boolean;
}

/** A TCP proxy in front of one server that damages the connection on demand. */
export interface FaultProxy {
  readonly port: number;
  readonly url: string;
  readonly faults: ProxyFaults;
  /** Connections open now. */
  readonly connections: number;
  /** Resolves when the server's next bytes have been swallowed by `dropReplies`. */
  replyDropped(): Promise<void>;
  /** Resolves when the next bytes of a client have come in. */
  requestArrived(): Promise<void>;
  /** Resets all open connections. */
  cut(): void;
  close(): Promise<void>;
}

export async function startProxy(
  targetPort: () => number,
  host = "127.0.0.1",
  listening = { host: "127.0.0.1", port: 0 },
): Promise<FaultProxy> {
  const faults: ProxyFaults = {
    dropReplies: false,
    dropRequests: false,
    delayMs: 0,
    garbage: null,
    refuse: false,
  };
  const pairs = new Set<readonly [Socket, Socket]>();
  const droppedWaiters = new Set<() => void>();
  const requestWaiters = new Set<() => void>();

  /** One direction of a connection. TCP keeps its order, also when the delay ends while something is on its way. */
  function openLane(to: Socket) {
    const onTheWay: { chunk: Buffer | string; due: number }[] = [];
    let timer: NodeJS.Timeout | undefined;
    const deliver = (): void => {
      timer = undefined;
      const now = performance.now();
      while (onTheWay[0] !== undefined && onTheWay[0].due <= now) {
        const { chunk } = onTheWay.shift()!;
        if (to.writable) to.write(chunk);
      }
      if (onTheWay[0] !== undefined) timer = setTimeout(deliver, onTheWay[0].due - now);
    };
    return {
      forward(chunk: Buffer | string): void {
        onTheWay.push({ chunk, due: performance.now() + faults.delayMs });
        if (timer === undefined) deliver();
      },
      close(): void {
        clearTimeout(timer);
        onTheWay.length = 0;
      },
    };
  }

  const server = createServer((client) => {
    if (faults.refuse) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ host, port: targetPort(), noDelay: true });
    client.setNoDelay(true);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const [there, back] = [openLane(upstream), openLane(client)];
    client.on("data", (chunk: Buffer) => {
      if (!faults.dropRequests) there.forward(chunk);
      for (const wake of requestWaiters) wake();
      requestWaiters.clear();
    });
    upstream.on("data", (chunk: Buffer) => {
      if (faults.dropReplies) {
        for (const wake of droppedWaiters) wake();
        droppedWaiters.clear();
        return;
      }
      back.forward(faults.garbage ?? chunk);
      faults.garbage = null;
    });
    const end = () => {
      pairs.delete(pair);
      there.close();
      back.close();
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) {
      socket.on("error", end);
      socket.on("close", end);
    }
  });
  server.listen(listening);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    faults,
    get connections() {
      return pairs.size;
    },
    requestArrived: () =>
      new Promise((resolve) => {
        requestWaiters.add(resolve);
      }),
    replyDropped: () =>
      new Promise((resolve) => {
        droppedWaiters.add(resolve);
      }),
    cut() {
      for (const [client, upstream] of pairs) {
        client.resetAndDestroy();
        upstream.destroy();
      }
    },
    async close() {
      server.close();
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      if (server.listening) await once(server, "close");
    },
  };
}
