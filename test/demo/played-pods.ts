/** Where no node is, somebody has to say that pods have run, or no Job would ever end. */
import { setTimeout as sleep } from "node:timers/promises";
import { pods, type KubeClient } from "../../src/kube/index.ts";
import { openStream } from "../chaos/stream.ts";

/** Each pod runs at once, and succeeds after `runMs`. */
export async function playPods(
  client: KubeClient,
  namespace: string,
  runMs: number,
): Promise<AsyncDisposable> {
  const stop = new AbortController();
  const { signal } = stop;
  const playing = new Set<Promise<void>>();

  async function say(name: string, status: object): Promise<void> {
    try {
      await client.patch(
        pods,
        { namespace, name },
        { type: "merge", body: { status } },
        { subresource: "status", signal },
      );
    } catch {
      // It is gone, or so is the server. A pod that nothing can be said of stays as it is, and the table shows it.
    }
  }

  async function play(name: string): Promise<void> {
    await say(name, { phase: "Running", startTime: new Date().toISOString() });
    await sleep(runMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await say(name, { phase: "Succeeded" });
  }

  const stream = await openStream(client, pods, namespace, (change, { metadata }) => {
    if (change !== "ADDED" || metadata.name === undefined) return;
    const played = play(metadata.name);
    playing.add(played);
    void played.finally(() => playing.delete(played));
  });
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(playing);
      await stream.close();
    },
  };
}
