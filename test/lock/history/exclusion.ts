/** Who holds what, seen on one clock: all clients of a run live in this process. */
export interface Exclusion {
  /** `client` holds `key` for as long as `isHeld` says so; `token` is larger than all before, if there is one. */
  enter(client: string, key: string, isHeld: () => boolean, token?: bigint): Stay;
  /** Compares all stays at this moment. */
  look(): void;
  /** What a fault did, for the trace of a violation. */
  note(event: string): void;
  readonly violations: readonly string[];
  readonly entered: number;
}

export interface Stay {
  /** The client renewed by value, and takes it that nobody else had the lock since it entered. */
  renewed(): void;
  leave(): void;
}

interface Entry {
  readonly client: string;
  readonly key: string;
  readonly at: number;
  readonly isHeld: () => boolean;
}

const TRACE = 25;

export function createExclusion(): Exclusion {
  const inside = new Set<Entry>();
  const entries: Entry[] = [];
  const tokens = new Map<string, bigint>();
  const trace: string[] = [];
  const violations: string[] = [];

  function note(event: string): void {
    trace.push(`${performance.now().toFixed(0)} ${event}`);
    if (trace.length > TRACE) trace.shift();
  }

  function violated(what: string): void {
    violations.push([what, ...trace].join("\n  "));
  }

  function look(): void {
    const holding = [...inside].filter((entry) => entry.isHeld());
    for (const [i, one] of holding.entries()) {
      for (const other of holding.slice(i + 1)) {
        if (one.key === other.key) violated(`${one.client} and ${other.client} hold ${one.key}`);
      }
    }
  }

  return {
    violations,
    note,
    look,
    get entered() {
      return entries.length;
    },
    enter(client, key, isHeld, token) {
      if (token !== undefined) {
        const highest = tokens.get(key) ?? 0n;
        if (token <= highest) violated(`${client} has token ${token} of ${key} after ${highest}`);
        else tokens.set(key, token);
      }
      const entry: Entry = { client, key, at: performance.now(), isHeld };
      inside.add(entry);
      entries.push(entry);
      note(`${client} holds`);
      look();
      return {
        renewed() {
          note(`${client} renewed`);
          const since = entries.find((e) => e.key === key && e !== entry && e.at > entry.at);
          if (since !== undefined) violated(`${client} renewed what ${since.client} had meanwhile`);
          look();
        },
        leave() {
          note(`${client} leaves`);
          inside.delete(entry);
        },
      };
    },
  };
}
