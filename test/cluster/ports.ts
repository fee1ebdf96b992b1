import { createServer } from "node:net";
import { ClusterError, codeOf } from "./errors.ts";

/**
 * Ports for servers that must come back on the same port after a restart. They lie below the range from which the kernel
 * gives ports to clients and to `listen(0)` (32768 and up on Linux), so nobody takes one by chance while its server is down.
 */
const FIRST = 20_000;
const LAST = 31_999;

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

/**
 * Chooses `count` ports that nobody listens on and that no other cluster has reserved. Call it while holding the lock that
 * guards the reservations.
 */
export async function choosePorts(
  count: number,
  reserved: ReadonlySet<number>,
  random: () => number = Math.random,
): Promise<number[]> {
  const span = LAST - FIRST + 1;
  const chosen: number[] = [];
  const start = Math.floor(random() * span);
  for (let step = 0; step < span && chosen.length < count; step++) {
    const port = FIRST + ((start + step) % span);
    if (!reserved.has(port) && (await isFree(port))) chosen.push(port);
  }
  if (chosen.length < count) {
    throw new ClusterError(`no ${count} free ports between ${FIRST} and ${LAST}`);
  }
  return chosen;
}
