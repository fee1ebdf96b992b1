/** A file of the project: its path from the root, with slashes, and its text. */
export interface SourceFile {
  path: string;
  text: string;
}

/**
 * Which layers a layer may import beside itself and `clock`. Imports go one way: what is not listed
 * is forbidden. kube, lock and telemetry do not know one another; they take small interfaces that
 * the consumer declares, and the operator wires them.
 */
export const LAYERS: Readonly<Record<string, readonly string[]>> = {
  clock: [],
  api: [],
  domain: ["api"],
  kube: ["api", "domain"],
  lock: ["api", "domain"],
  telemetry: ["api", "domain"],
  controller: ["api", "domain", "kube", "lock", "telemetry"],
  config: ["api", "domain", "telemetry"],
  operator: ["api", "domain", "kube", "lock", "telemetry", "controller", "config"],
  process: ["api", "domain", "telemetry", "config", "operator"],
  cli: ["api", "domain", "kube", "lock", "telemetry", "config", "operator", "process"],
  main: ["process"],
};

/** Packages (and `node:` modules) that a layer may not use; an empty pattern forbids all of them. */
const FORBIDDEN_PACKAGES: Readonly<Record<string, RegExp>> = {
  clock: /^/,
  api: /^/,
  domain: /^/,
  kube: /^(ioredis|winston|prom-client|node-cron)\b/,
  lock: /^(@kubernetes\/|winston\b|prom-client\b|node-cron\b|undici\b)/,
  telemetry: /^(@kubernetes\/|ioredis\b|node-cron\b|undici\b)/,
};

const IMPORTS = [
  /^\s*(?:import|export)\b[^;"']*?\bfrom\s*["']([^"']+)["']/gm,
  /^\s*import\s*["']([^"']+)["']/gm,
  /\bimport\s*\(\s*["']([^"']+)["']/g,
];

/** What a file imports, types included: a type is knowledge of another layer, too. */
export function importsOf(text: string): string[] {
  return IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ""));
}

/** `src/lock/node/client.ts` → `lock`, `src/main.ts` → `main`; undefined outside of src. */
function layerOf(path: string): string | undefined {
  return /^src\/([^/]+?)(?:\.ts$|\/)/.exec(path)?.[1];
}

/** `../api/names.ts` seen from `src/domain/job.ts` → `src/api/names.ts`. */
function resolve(from: string, specifier: string): string {
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

function judge(file: string, layer: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) {
    return FORBIDDEN_PACKAGES[layer]?.test(specifier) === true
      ? `${file}: ${layer} may not use ${specifier}`
      : undefined;
  }
  const target = resolve(file, specifier);
  const other = layerOf(target);
  if (other === undefined) return `${file}: imports ${target}, which is not part of src`;
  if (other === layer || other === "clock") return undefined;
  return LAYERS[layer]?.includes(other) === true
    ? undefined
    : `${file}: ${layer} may not import ${other} (${specifier})`;
}

/** Every import of src that goes against the layers, and every file that belongs to none. */
export function layeringViolations(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const layer = layerOf(path);
    if (layer === undefined) return [];
    if (LAYERS[layer] === undefined) {
      return [`${path}: no layer "${layer}"; name it in LAYERS of tools/house/layering.ts`];
    }
    return importsOf(text).flatMap((specifier) => judge(path, layer, specifier) ?? []);
  });
}
