/**
 * Another version of the product beside this one, as an image and a chart of its own: the newest release (a tag vX.Y.Z), or
 * what LOCKEDCRON_PREVIOUS names (a tag, a commit). Before the first release there is none; then it is the next one, made of
 * this tree: it writes into ledgers, statuses and conditions what this version does not know, as a next version may.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";
import { run } from "../cluster/run.ts";
import { buildImage, OPERATOR_IMAGE } from "../image/build.ts";

export interface Release extends AsyncDisposable {
  readonly what: string;
  /** Whether it comes after this version; else it comes before it. */
  readonly isNewer: boolean;
  readonly chart: string;
  readonly tag: string;
  /** Archive. */
  readonly image: string;
}

/** What the next version knows more: where it says so, and what comes behind. */
const NEXT: readonly (readonly [file: string, after: string, more: string])[] = [
  ["src/domain/claim.ts", "    runs: [...ledger.runs, run],\n", `    outlook: c.tick,\n`],
  ["src/domain/claim.ts", "    why: c.why,\n", `    outlook: "fair",\n`],
  ["src/domain/status.ts", "    tzdata: o.tzdata ?? tzdataVersion,\n", `    outlook: "fair",\n`],
  [
    "src/domain/conditions.ts",
    "    conditionOf(o, ConditionType.Ready, ready),\n",
    `    conditionOf(o, "Outlook", { ok: true, reason: "Fair", message: "no clouds" }),\n`,
  ],
  ["src/api/reasons.ts", `  Ready: "Ready",\n`, `  Outlook: "Outlook",\n`],
  ["src/controller/status-difference.ts", "  tzdata: true,\n", "  outlook: true,\n"],
  [
    "charts/lockedcron/files/lockedcronjobs.yaml",
    "         observedGeneration: {description: The generation of the spec that this status is about., type: integer, format: int64, minimum: 0}\n",
    "         outlook: {type: string}\n",
  ],
];
const NEXT_VERSION = "0.999.0";

export async function otherRelease(log: (line: string) => void): Promise<Release> {
  const dir = await mkdtemp(join(tmpdir(), "lockedcron-release-"));
  try {
    const ref = process.env["LOCKEDCRON_PREVIOUS"] ?? (await newestTag());
    if (ref === undefined) await makeNext(dir);
    else await checkOut(ref, dir);
    await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
    const tag = "other";
    const image = await buildImage({
      name: `${OPERATOR_IMAGE}:${tag}`,
      stages: "offline",
      version: tag,
      root: dir,
      log,
    });
    return {
      what: ref ?? `the next version, ${NEXT_VERSION}`,
      isNewer: ref === undefined,
      chart: join(dir, "charts/lockedcron"),
      tag,
      image,
      [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
    };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

async function newestTag(): Promise<string | undefined> {
  const tags = ["tag", "--list", "v*", "--sort=-version:refname", "--no-contains=HEAD"];
  const [newest] = (await run("git", tags, { cwd: ROOT })).split("\n");
  return newest === "" ? undefined : newest;
}

async function checkOut(ref: string, dir: string): Promise<void> {
  const archive = join(dir, "sources.tar");
  await run("git", ["archive", "--output", archive, ref], { cwd: ROOT });
  await run("tar", ["-xf", archive, "-C", dir]);
  await rm(archive);
}

async function makeNext(dir: string): Promise<void> {
  for (const part of ["src", "charts", "LICENSE", "NOTICE", "package.json"]) {
    await cp(join(ROOT, part), join(dir, part), { recursive: true });
  }
  for (const [file, after, more] of NEXT) await edit(join(dir, file), after, after + more);
  const version = /"version": "(.*)"/.exec(await readFile(join(ROOT, "package.json"), "utf8"))?.[1];
  const ours = (before: string, behind: string): [string, string] => [
    `${before}${version}${behind}`,
    `${before}${NEXT_VERSION}${behind}`,
  ];
  await edit(join(dir, "package.json"), ...ours(`"version": "`, `"`));
  await edit(join(dir, "charts/lockedcron/Chart.yaml"), ...ours("\nversion: ", "\n"));
  await edit(join(dir, "charts/lockedcron/Chart.yaml"), ...ours("\nappVersion: ", "\n"));
}

/** @throws Error when the place is not there, or not alone */
async function edit(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, "utf8");
  if (text.split(from).length !== 2) {
    throw new Error(
      `${file} has not exactly one ${JSON.stringify(from)}: mend test/e2e/releases.ts`,
    );
  }
  await writeFile(
    file,
    text.replace(from, () => to),
  );
}
