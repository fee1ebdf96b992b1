import { createServer } from "node:net";
import { ClusterError, codeOf } from "./errors.ts";
import type { Reservations } from "./reservations.ts";

/**
 * Ports for servers that must come back on the same port after a restart. They lie below the range from which the kernel
 * gives ports to clients and to `listen(0)` (32768 and up on Linux), so nobody takes one by chance while its server is down.
 */
const FIRST = 20_000;
const COUNT = 12_000;

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    return await new Promise<boolean>((resolve, reject) => {
      server.once("error", (error) =>
        codeOf(error) === "EADDRINUSE" ? resolve(false) : reject(error),
      );
      server.listen({ port, host: "0.0.0.0", exclusive: true }, () => resolve(true));
    });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

function* from(start: number): Generator<number> {
  for (let step = 0; step < COUNT; step++) yield FIRST + ((start + step) % COUNT);
}

/** Reserves `count` ports for a cluster; nobody listens on them now. */
export async function reservePorts(
  reservations: Reservations,
  holder: string,
  count: number,
): Promise<number[]> {
  const start = Math.floor(Math.random() * COUNT);
  const ports = await reservations.take("port", holder, count, from(start), isFree);
  if (ports.length === count) return ports;
  throw new ClusterError(`no ${count} free ports from ${FIRST} to ${FIRST + COUNT - 1}`);
}
