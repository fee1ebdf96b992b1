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

  function forward(to: Socket, chunk: Buffer | string): void {
    const write = () => {
      if (to.writable) to.write(chunk);
    };
    if (faults.delayMs > 0) setTimeout(write, faults.delayMs);
    else write();
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
    client.on("data", (chunk: Buffer) => {
      if (!faults.dropRequests) forward(upstream, chunk);
    });
    upstream.on("data", (chunk: Buffer) => {
      if (faults.dropReplies) {
        for (const wake of droppedWaiters) wake();
        droppedWaiters.clear();
        return;
      }
      forward(client, faults.garbage ?? chunk);
      faults.garbage = null;
    });
    const end = () => {
      pairs.delete(pair);
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
