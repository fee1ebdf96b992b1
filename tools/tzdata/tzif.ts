/** Reads one compiled time zone file: TZif, RFC 9636, version 2 or newer, fat or slim. */

/** A zone as its file tells it; instants and offsets in seconds. */
export interface TzifZone {
  /** Offset before the first change. */
  initial: number;
  /** Changes of offset, in order; the last may bring none. */
  changes: { at: number; offset: number }[];
  /** The rule after the last change, as a POSIX TZ string. */
  footer: string;
}

const HEADER = 44;

/** @throws Error when the bytes are not a TZif file of version 2 or newer. */
export function readTzif(bytes: Buffer): TzifZone {
  const old = readHeader(bytes, 0);
  // The first block has 32-bit instants: for programs of the last century.
  const begin = HEADER + dataLength(old, 4);
  const head = readHeader(bytes, begin);
  let at = begin + HEADER;
  const instants = Array.from({ length: head.times }, (_, i) =>
    Number(bytes.readBigInt64BE(at + 8 * i)),
  );
  at += 8 * head.times;
  const indexes = [...bytes.subarray(at, at + head.times)];
  at += head.times;
  const offsets = Array.from({ length: head.types }, (_, i) => bytes.readInt32BE(at + 6 * i));
  const end = begin + HEADER + dataLength(head, 8);

  const initial = offsets[0]!;
  const changes: TzifZone["changes"] = [];
  for (const [i, instant] of instants.entries()) {
    const offset = offsets[indexes[i]!]!;
    // The last one stays even if it changes nothing: the footer holds from there on, and not before.
    const changed = offset !== (changes.at(-1)?.offset ?? initial);
    if (changed || i === instants.length - 1) changes.push({ at: instant, offset });
  }
  return { initial, changes, footer: bytes.toString("latin1", end).trim() };
}

interface Header {
  isUt: number;
  isStd: number;
  leaps: number;
  times: number;
  types: number;
  chars: number;
}

function readHeader(bytes: Buffer, begin: number): Header {
  if (bytes.toString("latin1", begin, begin + 4) !== "TZif" || bytes[begin + 4]! < 0x32)
    throw new Error("not a TZif file of version 2 or newer");
  const [isUt, isStd, leaps, times, types, chars] = Array.from({ length: 6 }, (_, i) =>
    bytes.readUInt32BE(begin + 20 + 4 * i),
  ) as [number, number, number, number, number, number];
  if (leaps > 0) throw new Error("it counts leap seconds (a right/ zone)");
  return { isUt, isStd, leaps, times, types, chars };
}

function dataLength({ isUt, isStd, times, types, chars }: Header, instantSize: number): number {
  return times * (instantSize + 1) + types * 6 + chars + isStd + isUt;
}
