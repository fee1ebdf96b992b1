import { get } from "node:https";

/** Credentials of one request. */
export interface Tls {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Whether a GET is answered with 200, on a connection of its own; an unreachable server is a no. */
export async function answersOk(url: string, tls: Tls): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { ...tls, agent: false, timeout: 2_000 }, (response) => {
      response.resume().on("error", () => resolve(false));
      response.on("end", () => resolve(response.statusCode === 200));
    });
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", () => resolve(false));
  });
}
