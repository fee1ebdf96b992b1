import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { withFileLock } from "./flock.ts";

/**
 * Numbers (ports, address ranges) that clusters hold, so that none takes a number whose holder has only just stopped its server.
 * One file per number, naming the holder's folder; a reservation lasts as long as that folder. In a place of its own, since
 * LOCKEDCRON_RUN gives runs different folders but the same ports.
 */
const folder = (): string => join(tmpdir(), `lockedcron-${userInfo().uid}-reserved`);

/** Only valid inside `reserving`. */
export interface Reservations {
  /** Gives the folder `holder` the first `count` candidates that nobody holds and that `isFree`; fewer when there are no more. */
  take(
    kind: string,
    holder: string,
    count: number,
    candidates: Iterable<number>,
    isFree: (candidate: number) => boolean | Promise<boolean>,
  ): Promise<number[]>;
  /** Forgets what folders held that are gone. */
  prune(): Promise<void>;
}

/** Runs `body` while no other process reserves. The folders of new holders must be there when it ends. */
export async function reserving<T>(body: (reservations: Reservations) => Promise<T>): Promise<T> {
  await mkdir(folder(), { recursive: true, mode: 0o700 });
  return withFileLock(join(folder(), "lock"), () => body({ take, prune }));
}

async function isHeld(file: string): Promise<boolean> {
  const holder = await readFile(file, "utf8").catch(() => undefined);
  return holder !== undefined && existsSync(holder);
}

const take: Reservations["take"] = async (kind, holder, count, candidates, isFree) => {
  const taken: number[] = [];
  for (const candidate of candidates) {
    if (taken.length === count) break;
    const file = join(folder(), `${kind}-${candidate}`);
    if ((await isHeld(file)) || !(await isFree(candidate))) continue;
    await writeFile(file, holder);
    taken.push(candidate);
  }
  return taken;
};

const prune: Reservations["prune"] = async () => {
  for (const name of await readdir(folder())) {
    const file = join(folder(), name);
    if (name !== "lock" && !(await isHeld(file))) await rm(file);
  }
};
