/** The commands of docs/migrate.md, carried out as they stand there. */
import { readFileSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Cluster } from "../cluster/cluster.ts";
import { run } from "../cluster/run.ts";

/** It waits in loops of its own. */
const PATIENCE_MS = 120_000;
const ROOT = resolve(import.meta.dirname, "../..");

export interface Guide {
  /** Carries out one of the blocks of commands of the chapter, the first being 0, for the object of this name. */
  step(chapter: "Over" | "Back", block: number, name: string): Promise<void>;
}

/** @param namespace that the reader's kubectl works in */
export async function openGuide(cluster: Cluster, namespace: string): Promise<Guide> {
  const bin = join(cluster.dir, "guide");
  await mkdir(bin);
  const node = join(ROOT, "node_modules/.bin/node");
  for (const [command, words] of [
    ["kubectl", [cluster.kubectlPath, "--namespace", namespace]],
    ["lockedcron", [node, join(ROOT, "src/cli/main.ts")]],
  ] as const) {
    await writeFile(join(bin, command), `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`);
    await chmod(join(bin, command), 0o755);
  }
  const chapters = chaptersOf(readFileSync(join(ROOT, "docs/migrate.md"), "utf8"));
  const env = {
    KUBECONFIG: cluster.kubeconfigPath,
    PATH: `${bin}:${process.env.PATH ?? ""}`,
  };
  return {
    async step(chapter, block, name) {
      const commands = chapters.get(chapter)?.[block];
      if (commands === undefined)
        throw new Error(`docs/migrate.md: ${chapter} has no block ${block}`);
      const signal = AbortSignal.timeout(PATIENCE_MS);
      await run("sh", ["-euc", commands], { env: { ...env, NAME: name }, signal });
    },
  };
}

function chaptersOf(text: string): Map<string, string[]> {
  const chapters = text.split(/^## /m).slice(1);
  return new Map(
    chapters.map((chapter) => [
      chapter.slice(0, chapter.indexOf("\n")),
      [...chapter.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = ""]) => commands),
    ]),
  );
}
