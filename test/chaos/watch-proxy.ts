import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A proxy of bytes in front of the API server that can hold back what comes on watches and let calls pass: then the client
 * acts on an old cache. TLS passes through unread; the lanes are told apart by the protocols that the client offers in its
 * first message (ALPN, RFC 7301), for only watches go over HTTP/2.
 */
export interface WatchProxy extends AsyncDisposable {
  readonly port: number;
  /** Nothing arrives on watches any more; connections stay open, and new ones stand still too. */
  holdWatches(): void;
  /** What was held back arrives. */
  release(): void;
}

const OFFERS_HTTP_2 = Buffer.from("\x02h2");

export async function startWatchProxy(target: string): Promise<WatchProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const watches = new Set<Socket>();
  const sockets = new Set<Socket>();
  let held = false;

  const server = createServer((client) => {
    const upstream = connect(Number(targetPort), hostname);
    const end = (): void => {
      for (const socket of [client, upstream]) {
        sockets.delete(socket);
        watches.delete(socket);
        socket.destroy();
      }
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.once("data", (hello: Buffer) => {
      if (!hello.includes(OFFERS_HTTP_2)) return;
      watches.add(upstream);
      if (held) upstream.pause();
    });
    client.pipe(upstream);
    upstream.on("data", (chunk) => client.write(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    port: (server.address() as AddressInfo).port,
    holdWatches() {
      held = true;
      for (const socket of watches) socket.pause();
    },
    release() {
      held = false;
      for (const socket of watches) socket.resume();
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
