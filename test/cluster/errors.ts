/**
 * An error whose message is meant for the person at the terminal: it names what was wrong, the value, and the way out.
 * Everything else that is thrown here is a defect and keeps its stack.
 */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
}

/** A wrong flag or variable; the command line ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The errno name (`ENOENT`, ...) of a system error, else undefined. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
