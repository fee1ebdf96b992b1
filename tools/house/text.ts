import type { SourceFile } from "./layering.ts";

/** Lines a hand-written file may have, by the first folder of its path. */
const MAX_LINES: Readonly<Record<string, number>> = { src: 300, tools: 300, bench: 300, test: 500 };

/** Files too long to be read in one go. Data and vectors are not TypeScript, so they do not count. */
export function lengthViolations(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const limit = MAX_LINES[path.split("/")[0] ?? ""];
    if (limit === undefined || !path.endsWith(".ts")) return [];
    const lines = text.split("\n").length - 1;
    return lines > limit ? [`${path}: ${lines} lines, at most ${limit}; split it by concept`] : [];
  });
}

/**
 * What ties a commit to the machine it was made on: home folders, a build host's own paths, and the
 * registries that a lock file would pin (everybody's npm and Go have their own).
 */
const MACHINE_TEXT: readonly [what: string, pattern: RegExp][] = [
  ["a path of somebody's machine", /(?<![\w.$~}-])\/(?:work|root|Users|home\/[a-z][\w-]*)\//],
  ["a folder of this working session", /\/tmp\/brief\b/],
  [
    "the host of a package registry",
    /\b(?:registry\.npmjs\.(?:org|com)|registry\.yarnpkg\.com|proxy\.golang\.org|sum\.golang\.org|files\.pythonhosted\.org|repo1?\.maven\.(?:org|apache\.org)|deb\.debian\.org|static\.crates\.io)\b/,
  ],
  ["a package address that a lock file pins", /"resolved":\s*"https?:/],
];

/** Committed text that holds only on one machine. */
export function machineViolations(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, i) =>
      MACHINE_TEXT.filter(([, pattern]) => pattern.test(line)).map(([what, pattern]) => {
        const found = pattern.exec(line)?.[0] ?? "";
        return `${path}:${i + 1}: holds ${what} (${found})`;
      }),
    ),
  );
}

/** The values of a table of constants such as `Reason`, and what docs/reasons.md says of them. */
export function reasonViolations(reasons: Iterable<string>, page: string): string[] {
  const wanted = new Set(reasons);
  // A row of a table begins with the reason; several may share one.
  const rows = page.split("\n").filter((line) => /^\|\s*`/.test(line));
  const documented = new Set(
    rows.flatMap((row) => row.split("|")[1]?.match(/(?<=`)\w+(?=`)/g) ?? []),
  );
  const missing = [...wanted].filter((reason) => !documented.has(reason));
  const stray = [...documented].filter((reason) => !wanted.has(reason));
  return [
    ...missing.map((reason) => `${reason} has no row in docs/reasons.md`),
    ...stray.map((reason) => `docs/reasons.md explains ${reason}, which is none`),
  ];
}
