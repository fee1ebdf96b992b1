/** Every move that can be made in a state of the world: by a process, by a watch, by a fault, by the rest of the cluster. */
import { ATTEMPT_ANNOTATION, RUN_ID_ANNOTATION, NAME_LABEL } from "../../../src/api/names.ts";
import { serve } from "./api-server.ts";
import { describe, ledgerOf } from "./describe.ts";
import { clockMoves, clusterMoves } from "./cluster-moves.ts";
import type { Identities } from "./identity.ts";
import { once } from "./memo.ts";
import { blame, may, type Move } from "./move.ts";
import type { Mind } from "./mind.ts";
import type {
  Answer,
  Fault,
  Flight,
  Process,
  Program,
  Request,
  Scenario,
  Tamper,
  WatchEvent,
  World,
} from "./types.ts";

export interface Rules {
  scenario: Scenario;
  tamper: Tamper;
  ids: Identities;
  mind: Mind;
}

/** Where moves come from; each is asked for them only when it is its turn. */
export type Source = () => Move[] | Promise<Move[]>;

export function sourcesOf(world: World, rules: Rules): Source[] {
  const sources: Source[] = [];
  for (const [i, process] of world.processes.entries()) {
    if (process.dead) sources.push(() => restart(world, rules, i));
    else {
      sources.push(
        () => nextSteps(world, rules, i),
        () => watchMoves(world, rules, i),
        () => timeMoves(world, i),
        () => deathMoves(world, rules, i),
      );
    }
  }
  sources.push(
    () => world.dead.map((name) => proveDead(world, rules.tamper, name)),
    () => world.flights.map((flight) => arrival(world, flight)),
    () => clusterMoves(world, rules.scenario),
    () => clockMoves(world, rules.scenario),
  );
  return sources;
}

/** Every move; and whether one was left out because of the bound on attempts. */
export async function movesOf(world: World, rules: Rules): Promise<{ list: Move[]; cut: boolean }> {
  const list: Move[] = [];
  let cut = false;
  for (const source of sourcesOf(world, rules)) {
    for (const move of await source()) {
      if (beyond(move.next, rules.scenario.maxAttempts)) cut = true;
      else list.push({ ...move, next: withoutLameFlights(move.next) });
    }
  }
  return { list, cut };
}

function beyond({ lease }: World, maxAttempts: number): boolean {
  const runs = ledgerOf(lease)?.runs ?? [];
  return runs.some((r) => r.attempts.some((a) => a.n > maxAttempts));
}

async function nextSteps(world: World, rules: Rules, i: number): Promise<Move[]> {
  const process = world.processes[i] as Process;
  const { answer } = process.busy ?? {};
  if (answer !== undefined) {
    const next = place(world, i, await rules.mind.answered(process, world, answer));
    return [{ label: `${process.name} has its answer`, by: i, fault: false, next }];
  }
  const moves: Move[] = [];
  const programs: (Program | undefined)[] =
    process.busy === undefined && (process.known.fence?.spec?.holderIdentity ?? "") !== ""
      ? [undefined, "sweep"]
      : [undefined];
  for (const program of programs) {
    const request = await rules.mind.request(process, world, program);
    if (request !== undefined)
      moves.push(...(await stepMoves(world, rules, i, request, "", program)));
  }
  return moves;
}

/**
 * What can become of the request that process `i` makes next.
 *
 * Two requests are answered together with the one that follows, which hides nothing: an election touches nothing that
 * others see, and a compare-and-set that has come too late stays too late, however long the next look is put off.
 */
async function stepMoves(
  world: World,
  rules: Rules,
  i: number,
  request: Request,
  before = "",
  program?: Program,
): Promise<Move[]> {
  const { scenario, mind } = rules;
  const process = world.processes[i] as Process;
  const label = before + describe(process, request);
  const after = async (to: World, answer: Answer): Promise<World> => {
    if (scenario.slowAnswers === true) {
      return place(to, i, mind.waiting(process, world, request, answer, program));
    }
    return place(to, i, await mind.answered(process, world, answer, program));
  };
  const list: Move[] = [];
  const add = async (said: string, to: World, answer: Answer, fault?: Fault): Promise<void> => {
    const next = await after(to, answer);
    // A fault that changes nothing is not worth its place in the bound.
    if (fault !== undefined && next.processes[i] === process && to === world) return;
    const blamed = fault === undefined ? next : blame(next, fault);
    list.push({ label: label + said, by: i, fault: fault !== undefined, next: blamed });
  };
  const goOn = async (said: string, answer: Answer): Promise<void> => {
    const next = await after(world, answer);
    const { busy } = next.processes[i] as Process;
    if (busy === undefined || busy.answer !== undefined) {
      list.push({ label: label + said, by: i, fault: false, next });
    } else list.push(...(await stepMoves(next, rules, i, busy.request, `${label}${said}; `)));
  };

  if (request.verb === "elect") {
    for (const elected of scenario.elections) {
      await goOn(
        `: ${elected}`,
        once(NOTHING, elected, () => ({ elected })),
      );
    }
    return list;
  }
  const { answer, world: served } = serve(world, request);
  if (request.verb === "update" && request.of === "lease" && "failed" in answer)
    await goOn(`: ${answer.failed}`, answer);
  else await add("failed" in answer ? `: ${answer.failed}` : "", served, answer);
  if (may(world, scenario, "lost")) {
    const flying = isWrite(request) ? fly(world, process.name, request) : world;
    await add(", no answer", flying, FAILED.lost, "lost");
  }
  if (request.verb === "create" && request.of === "job") {
    if (may(world, scenario, "refused")) {
      await add(": quota exceeded", world, FAILED.refused, "refused");
    }
    if (may(world, scenario, "notSent")) {
      await add(": no connection", world, FAILED.notSent, "notSent");
    }
  }
  return list;
}

/** Of each kind of object the watch tells the oldest news, or how it is now. */
async function watchMoves(world: World, { mind, scenario }: Rules, i: number): Promise<Move[]> {
  const process = world.processes[i] as Process;
  if (process.busy !== undefined && scenario.busyWatches !== true) return [];
  const queue = world.everyVersion ? (world.watches[i] ?? []) : newsFor(process, world);
  const list: Move[] = [];
  for (const kind of ["lease", "fence", "job", "owner"] as const) {
    const event = queue.find((e) => e.of === kind);
    if (event === undefined) continue;
    const next = await mind.told(process, event);
    if (next === process && !world.everyVersion) continue;
    const what = kind === "lease" ? "ledger" : kind;
    const label = `${process.name} is told of the ${what}${event.gone ? " (gone)" : ""}`;
    list.push({ label, by: i, fault: false, next: place(heard(world, i, event), i, next) });
  }
  return list;
}

function event(of: WatchEvent["of"], object: object, gone: boolean): WatchEvent {
  return once(object, `watch ${gone}`, () => ({ of, gone, object }) as WatchEvent);
}

/** What the caches of the process do not have as it is now. */
function newsFor({ known }: Process, world: World): WatchEvent[] {
  const { lease, owner, jobs } = world;
  const news: WatchEvent[] = [];
  if (known.lease !== lease) {
    if (lease !== undefined) news.push(event("lease", lease, false));
    else if (known.lease) news.push(event("lease", known.lease, true));
  }
  const { fence } = world;
  if (known.fence !== fence) {
    if (fence !== undefined) news.push(event("fence", fence, false));
    else if (known.fence) news.push(event("fence", known.fence, true));
  }
  for (const job of jobs) {
    const labelled = job.metadata.labels?.[NAME_LABEL] !== undefined;
    if (labelled && !known.jobs.includes(job)) news.push(event("job", job, false));
  }
  for (const job of known.jobs) {
    const there = jobs.some((j) => j.metadata.uid === job.metadata.uid);
    if (!there) news.push(event("job", job, true));
  }
  if (known.owner?.metadata.uid !== owner?.metadata.uid) {
    if (owner !== undefined) news.push(event("owner", owner, false));
    else if (known.owner) news.push(event("owner", known.owner, true));
  }
  return news;
}

function heard(world: World, i: number, event: WatchEvent): World {
  if (!world.everyVersion) return world;
  const watches = world.watches.map((queue, j) =>
    i === j ? queue.filter((e) => e !== event) : queue,
  );
  return { ...world, watches };
}

/** A request of the process's own, still unanswered, has been on its way for longer than it can be. */
function timeMoves(world: World, i: number): Move[] {
  const process = world.processes[i] as Process;
  if (process.busy !== undefined) return [];
  const open = (runId: string, n: number): boolean =>
    ledgerOf(world.lease)?.runs.some(
      (r) =>
        r.runId === runId &&
        r.attempts.some((a) => a.n === n && a.by === process.name && !a.settled),
    ) ?? false;
  return process.notes
    .filter((note) => note.state === "sent" && !note.over && open(note.runId, note.n))
    .map((note) => {
      const later = once(process, `${note.runId} ${note.n}`, () => ({
        ...process,
        notes: process.notes.map((n) => (n === note ? { ...n, over: true } : n)),
      }));
      const arrived = world.flights.filter(
        ({ by, request }) => by !== process.name || !isPost(request, note.runId, note.n),
      );
      return {
        label: `${process.name}'s attempt ${note.n} can arrive no more`,
        by: i,
        fault: false,
        next: place({ ...world, flights: arrived }, i, later),
      };
    });
}

function deathMoves(world: World, { scenario, tamper }: Rules, i: number): Move[] {
  const process = world.processes[i] as Process;
  const alive = world.processes.filter((p) => !p.dead).length;
  const list: Move[] = [];
  const corpse = once(NOTHING, process.name, () => ({
    name: process.name,
    dead: true,
    known: NOTHING,
    notes: [],
  }));
  const die = (after: World, fault: Fault): World =>
    place(blame({ ...after, watches: withoutQueue(after, i) }, fault), i, corpse);
  if (alive > 1 && may(world, scenario, "buried")) {
    const label = `${process.name} dies and is proven dead`;
    list.push({ label, fault: true, next: die(bury(world, tamper, process.name), "buried") });
  }
  if (alive > 1 && may(world, scenario, "crashed")) {
    const { request, answer } = process.busy ?? {};
    const sent = request !== undefined && answer === undefined && isWrite(request);
    const after = sent ? fly(world, process.name, request) : world;
    const next = die({ ...after, dead: [...world.dead, process.name] }, "crashed");
    list.push({ label: `${process.name} crashes`, fault: true, next });
  }
  return list;
}

function proveDead(world: World, tamper: Tamper, name: string): Move {
  const dead = world.dead.filter((d) => d !== name);
  const next = bury({ ...world, dead }, tamper, name);
  return { label: `${name} is proven dead`, fault: false, next };
}

/** Another process of the same replica. */
function restart(world: World, { scenario }: Rules, i: number): Move[] {
  if (!may(world, scenario, "restarted")) return [];
  const [replica, nonce] = (world.processes[i] as Process).name.split("/");
  const known = {
    owner: world.owner,
    lease: world.lease,
    ...(world.fence === undefined ? {} : { fence: world.fence }),
    jobs: world.jobs.filter((j) => j.metadata.labels?.[NAME_LABEL] !== undefined),
  };
  const born = { name: `${replica}/${Number(nonce) + 1}`, dead: false, known, notes: [] };
  const next = place(blame(world, "restarted"), i, born);
  return [{ label: `${born.name} starts`, fault: true, next }];
}

function bury(world: World, tamper: Tamper, name: string): World {
  const flights =
    tamper.impatient === true ? world.flights : world.flights.filter((f) => f.by !== name);
  return { ...world, flights, past: [...world.past, name].toSorted() };
}

const FAILED: Record<"lost" | "refused" | "notSent", Answer> = {
  lost: { failed: "Lost" },
  refused: { failed: "Forbidden" },
  notSent: { failed: "NotSent" },
};

const NOTHING = { owner: undefined, lease: undefined, jobs: [] };

function arrival(world: World, flight: Flight): Move {
  const process = { name: flight.by, dead: false, known: NOTHING, notes: [] };
  const { answer, world: next } = serve(world, flight.request);
  const what = describe(process, flight.request).slice(flight.by.length + 1);
  const failed = "failed" in answer ? `: ${answer.failed}` : "";
  return {
    label: `late, from ${flight.by}: ${what}${failed}`,
    fault: true,
    next: { ...next, flights: next.flights.filter((f) => f !== flight) },
  };
}

function fly(world: World, by: string, request: Request): World {
  const flight = once(request, by, () => ({ by, request }));
  if (world.flights.includes(flight)) return world;
  return { ...world, flights: [...world.flights, flight] };
}

/** A late write that the server would refuse for ever makes no difference. */
export function withoutLameFlights(world: World): World {
  if (world.flights.length === 0) return world;
  const flights = world.flights.filter(({ request }) => {
    if (request.verb === "update" && request.of === "fence") {
      const { uid, resourceVersion } = request.body.metadata;
      const { metadata } = world.fence ?? {};
      return uid === metadata?.uid && resourceVersion === metadata?.resourceVersion;
    }
    if (request.verb === "update") {
      const { resourceVersion } = request.body.metadata as { resourceVersion?: string };
      return (
        resourceVersion === undefined || resourceVersion === world.lease?.metadata.resourceVersion
      );
    }
    if (request.verb !== "unhold" && request.verb !== "delete") return true;
    return world.jobs.some((j) => j.metadata.uid === request.uid);
  });
  return flights.length === world.flights.length ? world : { ...world, flights };
}

function isWrite(request: Request): boolean {
  return ["create", "update", "unhold", "delete"].includes(request.verb);
}

function isPost(request: Request, runId: string, n: number): boolean {
  if (request.verb !== "create" || request.of !== "job") return false;
  const { annotations = {} } = request.body.metadata;
  return annotations[RUN_ID_ANNOTATION] === runId && annotations[ATTEMPT_ANNOTATION] === String(n);
}

function place(world: World, i: number, process: Process): World {
  return { ...world, processes: world.processes.map((p, j) => (i === j ? process : p)) };
}

function withoutQueue(world: World, i: number): World["watches"] {
  return world.watches.map((queue, j) => (i === j ? [] : queue));
}
