import {
  createReflector,
  type Reflector,
  type ReflectorOptions,
} from "../../src/kube/reflector.ts";
import type { KubeObject } from "../../src/kube/resources.ts";
import { until } from "../cluster/proc.ts";

/** A reflector that runs, with everything that it told. */
export interface Reflecting<T extends KubeObject> extends AsyncDisposable {
  reflector: Reflector<T>;
  /** "+name", "~name", "-name" in the order told. */
  changes: string[];
  /** Reasons of the troubles told, each once in a row. */
  troubles: string[];
  recoveries(): number;
  /** Waits until the first list is complete and a watch is open. */
  inStep(): Promise<void>;
  /** Waits until this was told. */
  told(change: string): Promise<void>;
  /** Waits until a trouble of this reason was told since the call. */
  trouble(reason: string): Promise<void>;
}

/** Long, since what is waited for may need a machine under load to restart a server. */
const PATIENCE_MS = 90_000;

export function reflect<T extends KubeObject>(options: ReflectorOptions<T>): Reflecting<T> {
  const changes: string[] = [];
  const troubles: string[] = [];
  let told = 0;
  let recoveries = 0;
  const counts = new Map<string, number>();
  const reflector = createReflector<T>({
    onTrouble({ lastError }) {
      told++;
      const reason = lastError?.reason ?? "";
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      if (troubles.at(-1) !== reason) troubles.push(reason);
    },
    onRecovered: () => void recoveries++,
    ...options,
  });
  reflector.store.subscribe({
    added: ({ metadata }) => void changes.push(`+${metadata.name}`),
    updated: ({ metadata }) => void changes.push(`~${metadata.name}`),
    deleted: ({ metadata }) => void changes.push(`-${metadata.name}`),
  });
  reflector.start();
  return {
    reflector,
    changes,
    troubles,
    recoveries: () => recoveries,
    async inStep() {
      await reflector.synced();
      await until("an open watch", PATIENCE_MS, () => reflector.health().watching);
    },
    async told(change) {
      await until(`${change} in ${changes.join(" ")}`, PATIENCE_MS, () => changes.includes(change));
    },
    async trouble(reason) {
      const before = counts.get(reason) ?? 0;
      await until(
        `trouble ${reason} (so far ${told}: ${troubles.join(" ")})`,
        PATIENCE_MS,
        () => (counts.get(reason) ?? 0) > before,
      );
    },
    [Symbol.asyncDispose]: () => reflector[Symbol.asyncDispose](),
  };
}
