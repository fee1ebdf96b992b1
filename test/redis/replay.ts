import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** A server that has stopped in time: whatever it is asked, it says what a real one said to this question before. */
export async function replay(
  port: number,
  question: readonly string[],
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const socket = connect(port, "127.0.0.1");
  const words = question.map((word) => `$${word.length}\r\n${word}\r\n`);
  socket.write(`*${question.length}\r\n${words.join("")}*1\r\n$4\r\nPING\r\n`);
  let said = "";
  // The answer to PING tells where the one before it ends.
  while (!said.endsWith("+PONG\r\n")) said += String((await once(socket, "data"))[0]);
  socket.destroy();
  const answer = said.slice(0, -"+PONG\r\n".length);

  const server = createServer((client) => {
    client.on("error", () => undefined);
    client.on("data", () => client.write(answer));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      await once(server, "close");
    },
  };
}
