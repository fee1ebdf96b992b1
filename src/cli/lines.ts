/** A line of input; null for one that was longer than allowed (its text is not kept). */
export type Line = string | null;

/**
 * Splits a stream at line feeds, and at nothing else: node:readline also breaks at U+2028 and U+2029, which may stand
 * inside a JSON string. Yields all lines that a chunk completes at once, so that their answers can be written at once.
 */
export async function* readLines(
  input: AsyncIterable<string | Uint8Array>,
  maxLength: number,
): AsyncGenerator<Line[]> {
  const decoder = new TextDecoder();
  let pending = "";
  let tooLong = false;

  const take = (text: string): Line[] => {
    const lines: Line[] = [];
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) {
        lines.push(tooLong ? null : pending);
        pending = "";
        tooLong = false;
      }
      tooLong ||= pending.length + part.length > maxLength;
      pending = tooLong ? "" : pending + part;
    }
    return lines;
  };

  for await (const chunk of input) {
    const lines = take(typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true }));
    if (lines.length > 0) yield lines;
  }
  const lines = take(decoder.decode());
  if (tooLong) lines.push(null);
  else if (pending !== "") lines.push(pending);
  if (lines.length > 0) yield lines;
}
