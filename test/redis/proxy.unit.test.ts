import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it } from "vitest";
import { startProxy } from "./proxy.ts";

it("keeps the order of what is on its way when the delay ends: answers find their questions", async () => {
  const echo = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await once(echo, "listening");
  const { port } = echo.address() as AddressInfo;
  const proxy = await startProxy(() => port);
  const socket = connect({ port: proxy.port, host: "127.0.0.1" }).setEncoding("utf8");
  let heard = "";
  const ends = new Promise<void>((resolve) => {
    socket.on("data", (text: string) => {
      heard += text;
      if (heard.length === 2) resolve();
    });
  });
  proxy.faults.delayMs = 200;
  // It has come to the proxy when the second one is sent.
  const arrived = proxy.requestArrived();
  socket.write("a");
  await arrived;
  proxy.faults.delayMs = 0;
  socket.write("b");
  await ends;
  expect(heard).toBe("ab");
  socket.destroy();
  await proxy.close();
  echo.close();
});
