/** The images that the Dockerfile builds on: their names, and by which digests a build pins them. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../tools/ci/command.ts";

/** One of each for the two stages: where the bundle is made, and what it runs on. */
export interface Bases {
  readonly node: string;
  readonly runtime: string;
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Defaults of the Dockerfile's ARGs. */
export async function baseNames(): Promise<Bases> {
  const text = await readFile(join(ROOT, "Dockerfile"), "utf8");
  const arg = (name: string): string => {
    const value = new RegExp(`^ARG ${name}=(\\S+)$`, "m").exec(text)?.[1];
    if (value === undefined) throw new Error(`the Dockerfile has no ARG ${name} with a default`);
    return value;
  };
  return { node: arg("NODE_IMAGE"), runtime: arg("RUNTIME_IMAGE") };
}

/**
 * What a release is built on, by NODE_DIGEST and RUNTIME_DIGEST; or undefined, for the stand-ins of this machine, but only
 * where BASES=stand-ins asks for them.
 * @throws Error with what to write
 */
export function digestsFor(env: NodeJS.ProcessEnv): Bases | undefined {
  const { NODE_DIGEST: node, RUNTIME_DIGEST: runtime, BASES: bases } = env;
  if (bases !== undefined && bases !== "" && bases !== "stand-ins") {
    throw new Error(`BASES=${bases}: write stand-ins, or NODE_DIGEST and RUNTIME_DIGEST instead`);
  }
  if (bases === "stand-ins") {
    if (node || runtime) throw new Error("BASES=stand-ins and digests of bases: write one of them");
    return undefined;
  }
  const digest = (name: string, value: string | undefined): string => {
    if (value && DIGEST.test(value)) return value;
    throw new Error(
      [
        `${name}=${value ?? ""}: a release pins its base images; write ${name}=sha256: and 64 hex digits, as told by`,
        "  docker buildx imagetools inspect IMAGE --format '{{.Manifest.Digest}}'",
        "or try it out on the programs of this machine, never to be published: BASES=stand-ins",
      ].join("\n"),
    );
  };
  return { node: digest("NODE_DIGEST", node), runtime: digest("RUNTIME_DIGEST", runtime) };
}
