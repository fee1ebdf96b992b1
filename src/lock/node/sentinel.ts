import { type Access, dial, type DialOptions, discard, type Endpoint } from "./dial.ts";
import { NodeError } from "./reasons.ts";

/** A master that Redis Sentinel looks after: one node, wherever it is just now. */
export interface SentinelTarget {
  readonly sentinels: readonly Endpoint[];
  readonly masterName: string;
  readonly access: Access;
  /** What Sentinel says → what can be reached, as "host:port". */
  readonly natMap?: Readonly<Record<string, string>>;
}

interface Sighting extends Endpoint {
  /** grows with every failover: the newest word counts */
  readonly epoch: number;
}

/** Somebody has to change a setting, of ours or of theirs. */
const NO_ENTRY = /^(WRONGPASS|NOAUTH|NOPERM|PASSWORDFILE)$/;

/** SENTINEL MASTER answers pairs of names and values. */
function sightingOf(answer: unknown): Sighting | undefined {
  const words = Array.isArray(answer) ? (answer as unknown[]).map(String) : [];
  const field = (name: string) => {
    const at = words.findIndex((word, i) => i % 2 === 0 && word === name);
    return at < 0 ? undefined : words[at + 1];
  };
  const [host, port] = [field("ip"), Number(field("port"))];
  if (host === undefined || !Number.isInteger(port)) return undefined;
  return { host, port, epoch: Number(field("config-epoch") ?? 0) };
}

async function ask(
  sentinel: Endpoint,
  target: SentinelTarget,
  options: DialOptions,
): Promise<Sighting> {
  const { line, greeting } = await dial(sentinel, target.access, options, (client) =>
    client.call("SENTINEL", "MASTER", target.masterName),
  );
  discard(line.client);
  const sighting = sightingOf(greeting);
  if (sighting === undefined) throw new NodeError("SENTINEL", "an answer without an address");
  return sighting;
}

/**
 * Asks all sentinels and believes the highest configuration epoch among a majority of them, so that one that was cut
 * off during a failover cannot send us to the old master; among those that answer, when a majority does not.
 * @throws NodeError NOMASTER when they do not know the name, SENTINEL when none answers
 */
export async function locateMaster(
  target: SentinelTarget,
  options: DialOptions,
): Promise<Endpoint> {
  const asked = target.sentinels.map((sentinel) => ask(sentinel, target, options));
  const answers = await majorityOf(asked);
  const seen = answers.flatMap((a) => (a.status === "fulfilled" ? [a.value] : []));
  const [newest] = seen.toSorted((a, b) => b.epoch - a.epoch);
  if (newest !== undefined) return reachable(newest, target.natMap);

  const reasons = answers.map((answer, i) => {
    const { host, port } = target.sentinels[i] ?? { host: "?", port: 0 };
    const why = answer.status === "rejected" ? (answer.reason as NodeError) : undefined;
    return { text: `${host}:${port} ${why?.code ?? ""}`, message: why?.message ?? "" };
  });
  if (reasons.some(({ message }) => /No such master/i.test(message))) {
    throw new NodeError("NOMASTER", `no sentinel knows a master "${target.masterName}"`);
  }
  const refused = answers.find(
    (answer) => answer.status === "rejected" && NO_ENTRY.test((answer.reason as NodeError).code),
  );
  if (refused?.status === "rejected") {
    const { code, message } = refused.reason as NodeError;
    throw new NodeError(code, `no sentinel lets us in: ${message}`);
  }
  const all = reasons.map(({ text }) => text).join(", ");
  throw new NodeError("SENTINEL", `no sentinel answers: ${all}`);
}

function reachable(found: Endpoint, natMap: SentinelTarget["natMap"]): Endpoint {
  const mapped = natMap?.[`${found.host}:${found.port}`];
  if (mapped === undefined) return { host: found.host, port: found.port };
  const colon = mapped.lastIndexOf(":");
  return { host: mapped.slice(0, colon), port: Number(mapped.slice(colon + 1)) };
}

/** The answers as soon as a majority is good ones, or all of them. */
function majorityOf<T>(asked: readonly Promise<T>[]): Promise<PromiseSettledResult<T>[]> {
  const { promise, resolve } = Promise.withResolvers<PromiseSettledResult<T>[]>();
  const answers: PromiseSettledResult<T>[] = [];
  let settled = 0;
  let good = 0;
  const note = (i: number, answer: PromiseSettledResult<T>): void => {
    answers[i] = answer;
    settled += 1;
    if (answer.status === "fulfilled") good += 1;
    if (good > asked.length / 2 || settled === asked.length) resolve(answers.filter(Boolean));
  };
  for (const [i, answer] of asked.entries()) {
    answer.then(
      (value) => note(i, { status: "fulfilled", value }),
      (reason: unknown) => note(i, { status: "rejected", reason }),
    );
  }
  return promise;
}
