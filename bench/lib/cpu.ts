import { readFileSync } from "node:fs";

/** USER_HZ of every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** User and system time of a process so far, seconds; 0 when it is gone. */
export function cpuSeconds(pid: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return 0;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** CPU seconds that named groups of processes use from now until the function returned is called. */
export function measureCpu(
  groups: Readonly<Record<string, readonly number[]>>,
): () => Record<string, number> {
  const sum = (pids: readonly number[]): number =>
    pids.reduce((total, pid) => total + cpuSeconds(pid), 0);
  const before = Object.entries(groups).map(([name, pids]) => ({ name, pids, at: sum(pids) }));
  return () =>
    Object.fromEntries(
      before.map(({ name, pids, at }) => [name, Math.round((sum(pids) - at) * 10) / 10]),
    );
}
