import { KubeError, type KubeClient } from "../../src/kube/index.ts";

/** An error as the API server answers with, or as the transport gives when there was no answer (status 0). */
export function aKubeError(
  status: number,
  reason: string,
  outcome: "rejected" | "unknown" = "rejected",
): KubeError {
  return new KubeError({ action: "call", status, reason, message: reason, outcome });
}

/** A call that the API server refuses. */
export async function rejected(status: number, reason: string): Promise<never> {
  throw aKubeError(status, reason);
}

export const notFound = (): Promise<never> => rejected(404, "NotFound");
export const conflict = (): Promise<never> => rejected(409, "Conflict");

/** A client that can do nothing but what it is given; every other call fails the test. */
export function aClient(calls: { [K in keyof KubeClient]?: unknown }): KubeClient {
  return new Proxy(calls, {
    get(given, call) {
      const found: unknown = Reflect.get(given, call);
      if (found !== undefined) return found;
      return () => {
        throw new Error(`client.${String(call)} was not to be called`);
      };
    },
  }) as unknown as KubeClient;
}
