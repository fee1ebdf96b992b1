/**
 * Where the schema of the job template comes from: the API server's own OpenAPI document, which the Go module
 * k8s.io/kubernetes carries. The module has 300 MB, so the few schemas needed are kept beside this file.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { reachable, type OpenApiDocument } from "./openapi.ts";

export const EXTRACT = path.join(import.meta.dirname, "openapi-batch-v1.json");

const MODULE = "k8s.io/kubernetes";
const DOCUMENT = "api/openapi-spec/v3/apis__batch__v1_openapi.json";
/** The folder whose go.mod pins the Kubernetes version that the test cluster runs. */
const PINNED_IN = path.resolve(import.meta.dirname, "../../test/cluster/tools/kubernetes");

export const JOB_TEMPLATE = "io.k8s.api.batch.v1.JobTemplateSpec";
export const OBJECT_REFERENCE = "io.k8s.api.core.v1.ObjectReference";

/** An extract of the document: `from` says of which one. */
export interface Extract extends OpenApiDocument {
  from: string;
}

export function readExtract(): Extract {
  return JSON.parse(readFileSync(EXTRACT, "utf8")) as Extract;
}

/**
 * The text that EXTRACT should have by the module at hand.
 * Returns why not when there is no Go, or the module is not in its cache: nothing is ever downloaded.
 */
export function extractFromModule(): { text: string } | { unavailable: string } {
  const module = findModule();
  if ("unavailable" in module) return module;
  const document = JSON.parse(
    readFileSync(path.join(module.dir, DOCUMENT), "utf8"),
  ) as OpenApiDocument;
  const { schemas } = document.components;
  const extract: Extract = {
    from: `${MODULE} ${module.version} ${DOCUMENT}`,
    components: {
      schemas: Object.fromEntries(
        reachable(document, [JOB_TEMPLATE, OBJECT_REFERENCE]).map((name) => [name, schemas[name]!]),
      ),
    },
  };
  return { text: `${JSON.stringify(extract, sortKeys, 1)}\n` };
}

function findModule(): { dir: string; version: string } | { unavailable: string } {
  if (!existsSync(path.join(PINNED_IN, "go.mod")))
    return { unavailable: `${path.relative(process.cwd(), PINNED_IN)}/go.mod does not exist` };
  const list = ["list", "-m", "-f", "{{.Version}} {{.Dir}}", MODULE];
  let found: string;
  try {
    found = execFileSync("go", list, {
      cwd: PINNED_IN,
      // Look, do not fetch: without the module in its cache, Go prints no folder.
      env: { ...process.env, GOPROXY: "off", GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  } catch (error) {
    return { unavailable: `go ${list[0]} -m ${MODULE}: ${reasonOf(error)}` };
  }
  const [version, dir] = found.split(" ");
  if (!version || !dir) return { unavailable: `${MODULE} is not in the module cache of Go` };
  return { dir, version };
}

function reasonOf(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  return (stderr || message).trim().split("\n")[0]!;
}

/** Keys in one order, so that a new version of the document shows as a small diff. */
function sortKeys(_key: string, value: unknown): unknown {
  if (!value || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
