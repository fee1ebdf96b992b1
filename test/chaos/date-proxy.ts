import { createServer, type IncomingMessage } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { KubeConfig } from "@kubernetes/client-node";

/**
 * A proxy in front of the API server under which its clock can be set: it changes nothing but the Date header of answers.
 * It speaks plain HTTP and has the credentials of its kubeconfig.
 */
export interface DateProxy extends AsyncDisposable {
  /** For replicas. */
  readonly kubeconfig: string;
  /** From now on the API server's clock seems so far ahead, ms; negative: behind. */
  shift(ms: number): void;
}

export async function startDateProxy(kubeconfigPath: string): Promise<DateProxy> {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfigPath);
  const target = new URL(config.getCurrentCluster()?.server ?? "");
  const credentials: Parameters<KubeConfig["applyToHTTPSOptions"]>[0] = {};
  await config.applyToHTTPSOptions(credentials);
  let shiftMs = 0;

  const server = createServer((asked, response) => {
    const { host: _, ...headers } = asked.headers;
    const forwarded = request(
      {
        ...credentials,
        hostname: target.hostname,
        port: target.port,
        path: asked.url ?? "/",
        method: asked.method ?? "GET",
        headers,
      },
      (answer: IncomingMessage) => {
        const date = new Date(Date.parse(answer.headers.date ?? "") + shiftMs).toUTCString();
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, date });
        response.flushHeaders();
        pipeline(answer, response, () => undefined);
      },
    );
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    pipeline(asked, forwarded, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const proxied = new KubeConfig();
  proxied.loadFromClusterAndUser(
    { name: "proxied", server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: "nobody" },
  );

  return {
    kubeconfig: proxied.exportConfig(),
    shift: (ms) => void (shiftMs = ms),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
