/** The waiting keys of the work queue, by priority. */

export interface Waiting {
  priority: number;
  since: number;
}

export interface Lines {
  push(key: string, waiting: Waiting): void;
  /** The first of the highest priority; undefined when none of this priority or a higher one waits. */
  shift(atLeast?: number): { key: string; waiting: Waiting } | undefined;
  /** The keys that come next, at most so many, of this priority or a higher one. */
  upcoming(count: number, atLeast: number): string[];
  drop(key: string): void;
  clear(): void;
  /** Keys of this priority or a higher one. */
  size(atLeast?: number): number;
}

/** One line of waiting keys per priority; a Map keeps order of arrival and removes from the middle at no cost. */
export function createLines(): Lines {
  const lines = new Map<number, Map<string, Waiting>>();
  const priorityOf = new Map<string, number>();
  /** Highest first. */
  let order: number[] = [];

  function lineOf(priority: number): Map<string, Waiting> {
    let line = lines.get(priority);
    if (line === undefined) {
      line = new Map();
      lines.set(priority, line);
      order = [...lines.keys()].sort((a, b) => b - a);
    }
    return line;
  }

  function take(key: string): Waiting | undefined {
    const priority = priorityOf.get(key);
    if (priority === undefined) return undefined;
    const line = lineOf(priority);
    const waiting = line.get(key);
    line.delete(key);
    priorityOf.delete(key);
    return waiting;
  }

  return {
    push(key, waiting) {
      const present = priorityOf.get(key);
      if (present !== undefined && present >= waiting.priority) return;
      // A raised key goes to the end of its new line, but it has been waiting since it first came.
      const since = take(key)?.since ?? waiting.since;
      lineOf(waiting.priority).set(key, { priority: waiting.priority, since });
      priorityOf.set(key, waiting.priority);
    },
    shift(atLeast = -Infinity) {
      for (const priority of order) {
        if (priority < atLeast) return undefined;
        const first = lineOf(priority).keys().next();
        if (first.done !== true) {
          return { key: first.value, waiting: take(first.value) as Waiting };
        }
      }
      return undefined;
    },
    upcoming(count, atLeast) {
      const keys: string[] = [];
      for (const priority of order) {
        if (priority < atLeast) break;
        for (const key of lineOf(priority).keys()) {
          if (keys.length >= count) return keys;
          keys.push(key);
        }
      }
      return keys;
    },
    drop(key) {
      take(key);
    },
    clear() {
      lines.clear();
      priorityOf.clear();
      order = [];
    },
    size(atLeast = -Infinity) {
      let sum = 0;
      for (const [priority, line] of lines) if (priority >= atLeast) sum += line.size;
      return sum;
    },
  };
}
