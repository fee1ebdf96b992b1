import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A proxy of bytes between a client and a real server: TLS and HTTP pass through unread. It can stop one direction, or
 * both, without closing anything (a black hole), and break every connection with a reset.
 */
export interface CutProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections taken so far. */
  opened(): number;
  open(): number;
  /** Nothing passes any more: "up" to the server, "down" to the client. What comes meanwhile is kept. */
  hold(direction: "up" | "down" | "both"): void;
  /** Lets everything pass again. */
  release(): void;
  /** A black hole for the connections there are: nothing passes, nothing is closed. New ones pass. */
  freeze(): void;
  /** Resets every connection; what was held is lost. New connections are taken. */
  cut(): void;
  /** Resets every connection, and refuses new ones until `listen`. */
  refuse(): Promise<void>;
  listen(): Promise<void>;
}

interface Pair {
  client: Socket;
  upstream: Socket;
  frozen: boolean;
}

export async function startCutProxy(target: string): Promise<CutProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const pairs = new Set<Pair>();
  let held: "up" | "down" | "both" | undefined;
  let opened = 0;

  const server = createServer({ pauseOnConnect: true }, (client) => {
    opened++;
    const pair = { client, upstream: connect(Number(targetPort), hostname), frozen: false };
    const { upstream } = pair;
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      reset(pair);
    };
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => client.write(chunk));
    apply(pair);
  });

  function apply({ client, upstream, frozen }: Pair): void {
    if (frozen || held === "up" || held === "both") client.pause();
    else client.resume();
    if (frozen || held === "down" || held === "both") upstream.pause();
    else upstream.resume();
  }

  function set(direction: typeof held): void {
    held = direction;
    for (const pair of pairs) apply(pair);
  }

  function cut(): void {
    for (const pair of pairs) reset(pair);
    pairs.clear();
  }

  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject).listen(port, "127.0.0.1", () => resolve());
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;

  async function refuse(): Promise<void> {
    if (!server.listening) return;
    const closed = new Promise((resolve) => server.close(resolve));
    cut();
    await closed;
  }

  return {
    port,
    opened: () => opened,
    open: () => pairs.size,
    hold: set,
    release: () => set(undefined),
    freeze() {
      for (const pair of pairs) {
        pair.frozen = true;
        apply(pair);
      }
    },
    cut,
    refuse,
    listen: async () => {
      if (!server.listening) await listen(port);
    },
    [Symbol.asyncDispose]: refuse,
  };
}

function reset({ client, upstream }: Pair): void {
  client.resetAndDestroy();
  upstream.resetAndDestroy();
}
