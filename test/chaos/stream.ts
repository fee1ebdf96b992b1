/** Every version of every object of one resource in one namespace, in order, from now on. */
import {
  isExpired,
  type KubeClient,
  type KubeObject,
  type ResourceType,
} from "../../src/kube/index.ts";

export interface Stream {
  readonly type: string;
  /** resourceVersions before which versions may have been left out: the server no longer knew them (410). */
  gaps(): readonly number[];
  close(): Promise<void>;
}

const RETRY_MS = 50;

/** Resolves once it watches. What is there already is told as ADDED. */
export async function openStream<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  namespace: string,
  take: (change: "ADDED" | "MODIFIED" | "DELETED", object: T) => void,
): Promise<Stream> {
  const stop = new AbortController();
  const gaps: number[] = [];
  const known = new Map<string, T>();
  let from = await list();

  function tell(change: "ADDED" | "MODIFIED" | "DELETED", object: T): void {
    if (change === "DELETED") known.delete(object.metadata.uid ?? "");
    else known.set(object.metadata.uid ?? "", object);
    take(change, object);
  }

  async function list(): Promise<string> {
    const { items, resourceVersion } = await client.list(type, { namespace, signal: stop.signal });
    const there = new Set(items.map((item) => item.metadata.uid));
    for (const object of known.values())
      if (!there.has(object.metadata.uid)) tell("DELETED", object);
    for (const item of items) {
      const old = known.get(item.metadata.uid ?? "");
      if (old?.metadata.resourceVersion === item.metadata.resourceVersion) continue;
      tell(old === undefined ? "ADDED" : "MODIFIED", item);
    }
    return resourceVersion;
  }

  async function run(opened: () => void): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await client.watch(type, {
          namespace,
          resourceVersion: from,
          timeoutSeconds: 600,
          signal: stop.signal,
          onOpen: opened,
          onEvent({ type: change, object }) {
            from = object.metadata.resourceVersion ?? from;
            if (change !== "BOOKMARK") tell(change, object);
          },
        });
      } catch (error) {
        if (stop.signal.aborted) return;
        if (isExpired(error)) await relist();
        else await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  async function relist(): Promise<void> {
    try {
      from = await list();
      gaps.push(Number(from));
    } catch {
      // The server is away: the next watch fails in the same way and we are back here.
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  const { promise, resolve } = Promise.withResolvers<void>();
  const running = run(resolve);
  await promise;
  return {
    type: type.plural,
    gaps: () => gaps,
    async close() {
      stop.abort();
      await running;
    },
  };
}
