/** RFC 3339 timestamps: strict reading and Go's spelling (`Z` for offset zero, seconds without fraction). */
import { MAX_SECOND, MIN_SECOND, dayOfDate, daysInMonth } from "./civil.ts";

const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/i;

/** Milliseconds since the epoch (a finer fraction is cut off), or null when the text is not a timestamp. */
export function parseInstant(text: string): number | null {
  const match = TIMESTAMP.exec(text);
  if (match === null) return null;
  const part = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(part) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59 || part(9) > 23 || part(10) > 59) return null;
  const offset = (part(9) * 3600 + part(10) * 60) * (match[8] === "-" ? -1 : 1);
  const at = dayOfDate(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
  if (at < MIN_SECOND || at > MAX_SECOND) return null;
  return at * 1000 + Number((match[7] ?? "").slice(0, 3).padEnd(3, "0"));
}

/** The instant (milliseconds) on a clock `offset` seconds east of UTC; a fraction of a second is cut off. */
export function formatInstant(ms: number, offset = 0): string {
  const second = Math.floor(ms / 1000);
  const local = second + offset;
  if (!(local >= MIN_SECOND && local <= MAX_SECOND)) return "invalid time";
  const reading = new Date(local * 1000).toISOString().slice(0, 19);
  // Go cuts seconds off an offset, toward zero.
  const minutes = Math.trunc(offset / 60);
  if (offset === 0) return `${reading}Z`;
  const size = Math.abs(minutes);
  return `${reading}${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
