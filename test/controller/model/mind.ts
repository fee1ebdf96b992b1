/**
 * What a process does next, as the real code has it. A step is a function of what the process knows and of the answers it
 * gets, so each situation is put to the code once and remembered: the same few thousand situations make up millions of
 * states of the world.
 */
import type { Identities } from "./identity.ts";
import { learn, play, type Standing } from "./session.ts";
import type {
  Answer,
  Process,
  Program,
  Request,
  Start,
  Tamper,
  WatchEvent,
  World,
} from "./types.ts";

export interface Mind {
  /** The request that the process waits for, or would begin its next step with; undefined when it has nothing to do. */
  request(process: Process, world: World, program?: Program): Promise<Request | undefined>;
  /** The process after its request was answered. */
  answered(process: Process, world: World, answer: Answer, program?: Program): Promise<Process>;
  /** The process whose request was answered, before the answer has reached it. */
  waiting(
    process: Process,
    world: World,
    request: Request,
    answer: Answer,
    program?: Program,
  ): Process;
  /** The process after its watch has told it something; the same object when that was no news. */
  told(process: Process, event: WatchEvent): Promise<Process>;
  /** How many situations were put to the code. */
  situations(): number;
}

export function createMind(ids: Identities, tamper: Tamper): Mind {
  const requests = new Map<string, Request | undefined>();
  const processes = new Map<string, Process>();
  let situations = 0;

  const startOf = (process: Process, world: World, program?: Program): Start =>
    process.busy?.start ?? {
      ...(program === undefined ? {} : { program }),
      known: process.known,
      notes: process.notes,
      now: world.now,
      past: world.past,
    };

  function afterwards(process: Process, start: Start, standing: Standing, items: object): Process {
    const { name } = process;
    if (!("request" in standing)) return ids.one({ name, dead: false, ...standing });
    const { known, notes } = process;
    const busy = { start, items: items as never[], request: standing.request };
    return ids.one({ name, dead: false, known, notes, busy });
  }

  return {
    async request(process, world, program) {
      if (process.busy !== undefined) return process.busy.request;
      const key = `${ids.of(process)} ${world.now} ${world.past.join()} ${program}`;
      if (requests.has(key)) return requests.get(key);
      situations++;
      const standing = await play(process.name, startOf(process, world, program), [], tamper);
      const request = "request" in standing ? standing.request : undefined;
      requests.set(key, request);
      return request;
    },

    async answered(process, world, answer, program) {
      const start = startOf(process, world, program);
      const key = `${ids.of(process)} ${ids.of(answer)} ${world.now} ${world.past.join()} ${program}`;
      let next = processes.get(key);
      if (next === undefined) {
        situations++;
        const items = [...(process.busy?.items ?? []), { answer }];
        next = afterwards(process, start, await play(process.name, start, items, tamper), items);
        processes.set(key, next);
      }
      return next;
    },

    waiting(process, world, request, answer, program) {
      const { known, notes } = process;
      const items = process.busy?.items ?? [];
      const busy = { start: startOf(process, world, program), items, request, answer };
      return { name: process.name, dead: false, known, notes, busy };
    },

    async told(process, event) {
      const key = `${ids.of(process)} ${ids.of(event)}`;
      let next = processes.get(key);
      if (next === undefined) {
        if (process.busy === undefined) {
          next = ids.one({ ...process, known: learn(process.known, event) });
        } else {
          const items = [...process.busy.items, { event }];
          next = ids.one({ ...process, busy: { ...process.busy, items } });
        }
        processes.set(key, next);
      }
      return next;
    },
    situations: () => situations,
  };
}
