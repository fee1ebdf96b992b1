/** What happens, in which order. Each step says in one sentence what it does, and the next ticks are shown. */
import type { Board, Row } from "./board.ts";
import type { Player } from "./cast.ts";
import type { Show } from "./show.ts";
import type { Stage } from "./stage.ts";

/** The sample whose ticks set the pace, and its lease. */
const PACE = "every-ten-seconds";
const LEASE_MS = 15_000;
/** Before the tick at which a replica is killed: too late for the others to learn of it. */
const BEFORE_TICK_MS = 300;
/** A tick that takes longer than this to end is waited for no more; the verdict will tell of it. */
const PATIENCE_MS = 60_000;

export interface Play {
  readonly stage: Stage;
  readonly board: Board;
  readonly show: Show;
  readonly short: boolean;
}

export async function perform(play: Play): Promise<void> {
  const { show, short } = play;
  const few = (many: number): number => (short ? 1 : many);

  await show.scene("All is well: three replicas, five Redis.");
  await ticks(play, few(2));
  const killed = await killWinner(play, few(2));
  const frozen = await freezeWinner(play, killed);
  show.note(`${frozen.name} goes on (SIGCONT), and ${killed.name} is started anew under its name.`);
  frozen.thaw();
  const back = killed.start();
  if (!short) await ticks(play, 1);
  await back;
  const lost = await killRedis(play, few(2));
  await cutOff(play);
  if (short) return;
  await emptyOne(play, lost);
  await show.scene("All is mended.");
  await ticks(play, 2);
}

async function killWinner(play: Play, count: number): Promise<Player> {
  const { show } = play;
  const victim = lastWinner(play);
  await show.scene(
    `SIGKILL for ${victim.name}, which won last, ${BEFORE_TICK_MS / 1000} s before the next tick: another one steps in.`,
  );
  const tick = await nextTick(play);
  await show.until(tick - BEFORE_TICK_MS);
  await victim.kill();
  await ticks(play, count);
  return victim;
}

/** For longer than the lease. In the long form in the middle of its run, whose lock and end are up to others then. */
async function freezeWinner(play: Play, killed: Player): Promise<Player> {
  const { show, short, stage } = play;
  let victim = lastWinner(play);
  if (victim === killed) victim = stage.players.find((player) => player !== killed) ?? victim;
  const until = `until its lease of ${LEASE_MS / 1000} s is over; ${killed.name} is still dead`;
  if (short) {
    await show.scene(`SIGSTOP for ${victim.name}, which won last, ${until}.`);
  } else {
    await show.scene(`SIGSTOP for ${victim.name} in the middle of its next run, ${until}.`);
    const tick = await nextTick(play);
    await show.when(() => rowAt(play, tick)?.phase === "Running", PATIENCE_MS);
  }
  victim.freeze();
  const end = Date.now() + LEASE_MS + 1_000;
  await ticks(play, 2);
  await show.until(end);
  return victim;
}

async function killRedis(play: Play, count: number): Promise<number> {
  const { show, stage } = play;
  const [first, second] = [1, 3];
  await show.scene("SIGKILL for two of the five Redis: three are a majority.");
  await Promise.all([stage.redis[first]?.kill(), stage.redis[second]?.kill()]);
  await ticks(play, count);
  show.note(
    "Both start again, empty. They have forgotten their votes, so replicas do not count them until the longest lease is over.",
  );
  await Promise.all([stage.redis[first]?.wipe(), stage.redis[second]?.wipe()]);
  return second;
}

async function cutOff(play: Play): Promise<void> {
  const { show, short } = play;
  const victim = lastWinner(play);
  if (!short) {
    await show.scene(
      `${victim.name}, which won last, hears nothing of the API server any more. Redis still elects it, once, and that election has to run out.`,
    );
    victim.cut("silence");
    await ticks(play, 1);
  }
  await show.scene(
    `${victim.name} is cut off from the API server: connections are reset, new ones refused.`,
  );
  victim.cut("reset");
  await ticks(play, short ? 1 : 2);
  show.note(`The API server is back for ${victim.name}.`);
  await victim.heal();
  if (!short) await ticks(play, 1);
}

async function emptyOne(play: Play, not: number): Promise<void> {
  const { show, stage } = play;
  const chosen = (not + 1) % stage.redis.length;
  await show.scene("One Redis is restarted, empty, while it bears the lock of a run.");
  const tick = await nextTick(play);
  await show.when(() => rowAt(play, tick)?.lock?.held === true, PATIENCE_MS);
  await stage.redis[chosen]?.wipe();
  await ticks(play, 1);
}

/** Shows so many coming ticks of the pace to their ends. */
async function ticks(play: Play, count: number): Promise<void> {
  const { show, stage } = play;
  const sample = stage.samples.find(({ name }) => name === PACE);
  let tick = await nextTick(play);
  for (let i = 1; i < count; i++) tick = sample?.schedule.next(tick) ?? tick;
  await show.until(tick);
  await show.when(() => rowAt(play, tick)?.settled === true, PATIENCE_MS);
}

async function nextTick({ board, show }: Play): Promise<number> {
  await show.when(() => board.next(PACE) !== undefined, PATIENCE_MS);
  return board.next(PACE) ?? Date.now();
}

function rowAt({ board }: Play, tick: number): Row | undefined {
  return board.rows().find((row) => row.sample === PACE && row.tick === tick);
}

function lastWinner({ board, stage }: Play): Player {
  const row = board
    .rows()
    .findLast(({ sample, winner }) => sample === PACE && winner !== undefined);
  const player = stage.players.find(({ name }) => name === row?.winner) ?? stage.players[0];
  if (player === undefined) throw new Error("there are no replicas");
  return player;
}
