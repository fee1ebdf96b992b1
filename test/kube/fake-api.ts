import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { KubeConfig } from "@kubernetes/client-node";

/** An API server that says what a real one cannot be made to say. Plain HTTP/1.1. */
export interface FakeApi extends AsyncDisposable {
  config(): KubeConfig;
  /** "METHOD path?query" of each request, in order of arrival. */
  readonly requests: string[];
}

export async function startFakeApi(
  answer: (request: IncomingMessage, response: ServerResponse, count: number) => void,
): Promise<FakeApi> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.setHeader("content-type", "application/json");
    answer(request, response, requests.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    requests,
    config() {
      const config = new KubeConfig();
      config.loadFromClusterAndUser(
        { name: "fake", server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
        { name: "nobody" },
      );
      return config;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers with a Status of this code, and with a line's end behind it, as the API server does. */
export function refuse(response: ServerResponse, code: number, fields: object = {}): void {
  response.statusCode = code;
  response.end(`${JSON.stringify({ kind: "Status", apiVersion: "v1", code, ...fields })}\n`);
}
