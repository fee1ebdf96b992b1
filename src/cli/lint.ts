/** `lockedcron lint`: what the API server and the operator would say of manifests, without either. */
import { API_VERSION, GROUP, KIND } from "../api/names.ts";
import type { LockedCronJobSpec } from "../api/types.ts";
import { isRecord } from "../domain/ledger-json.ts";
import { misuse, type Command, type Io } from "./command.ts";
import schema from "./crd-schema.json" with { type: "json" };
import { quote, readFlags } from "./flags.ts";
import { checkDoubts, checkRules } from "./lint/rules.ts";
import { checkSchema, type Report, type Schema } from "./lint/schema.ts";
import { pathText, readManifests, type Manifest, type Path } from "./manifests.ts";

const USAGE = `Usage: lockedcron lint FILE... [options]

Says what the API server would refuse in the LockedCronJobs of these manifests, and what the operator would report of
their schedules: one line per finding, FILE:LINE: error|warning: FIELD: MESSAGE. Other kinds are passed over.

  -f, --filename FILE  the same as FILE; - is standard input; may be given more than once
  --strict             warnings count as errors
  -h, --help           this text

What only a cluster knows (quotas, admission plugins, whether an image exists) it does not know.
Exit code: 0, 1 when there is an error, 2 for a wrong call.
`;

interface Finding {
  line: number;
  severity: "error" | "warning";
  text: string;
}

export const lint: Command = {
  async run(argv, io) {
    const flags = readFlags(argv, {
      filename: { type: "string", short: "f", multiple: true },
      strict: { type: "boolean" },
    });
    if (flags.values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    const files = [...(flags.lists.filename ?? []), ...flags.positionals];
    if (files.length === 0)
      flags.problems.push("no file is given: name one, or - for standard input");
    if (flags.problems.length > 0) return misuse(io, "lint", flags.problems);

    const { manifests, unreadable } = await readManifests(io, files);
    for (const { file, line, message } of unreadable) {
      await io.out(`${file}${line === undefined ? "" : `:${line}`}: error: ${message}\n`);
    }
    let errors = unreadable.length;
    let warnings = 0;
    let judged = 0;
    for (const manifest of manifests) {
      if (!isOurs(manifest)) continue;
      judged += 1;
      const findings = judge(manifest, io.now());
      errors += findings.filter(({ severity }) => severity === "error").length;
      warnings += findings.filter(({ severity }) => severity === "warning").length;
      await say(io, manifest, findings);
    }
    const others = manifests.length - judged;
    io.error(
      `${count(judged, "LockedCronJob")}: ${count(errors, "error")}, ${count(warnings, "warning")}` +
        `${others > 0 ? `; ${count(others, "object")} of other kinds passed over` : ""}\n`,
    );
    const strict = flags.values.strict === true && warnings > 0;
    return errors > 0 || strict ? 1 : 0;
  },
};

/** Of our group, whatever version: a wrong one is to be said, not passed over. */
function isOurs({ value }: Manifest): boolean {
  return value.kind === KIND || String(value.apiVersion).startsWith(`${GROUP}/`);
}

export function judge(manifest: Manifest, now: number): Finding[] {
  const findings: Finding[] = [];
  const reporter =
    (severity: Finding["severity"]): Report =>
    (path: Path, message: string) => {
      const text = `${pathText(path)}: ${message}`;
      findings.push({ line: manifest.lineOf(path), severity, text });
    };
  const error = reporter("error");
  const { value } = manifest;
  if (value.apiVersion !== API_VERSION) {
    error(["apiVersion"], `Invalid value: ${quote(value.apiVersion)}: must be ${API_VERSION}`);
  }
  if (value.kind !== KIND) error(["kind"], `Invalid value: ${quote(value.kind)}: must be ${KIND}`);
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  const { name, namespace } = metadata;
  if (typeof name !== "string" && typeof metadata.generateName !== "string") {
    error(["metadata", "name"], "Required value: name or generateName is required");
  }
  checkSchema(schema as Schema, value, [], error);
  const sound = findings.length === 0;
  if (isRecord(value.spec) && isRecord(value.spec.jobTemplate)) {
    const subject = {
      name: typeof name === "string" ? name : "",
      namespace: typeof namespace === "string" ? namespace : "default",
      spec: value.spec as unknown as LockedCronJobSpec,
    };
    // Rules take for granted that fields are of their types.
    if (sound) {
      checkRules(subject, error);
      checkDoubts(subject, now, reporter("warning"));
    }
  }
  return findings.toSorted((a, b) => a.line - b.line);
}

async function say(io: Io, { file }: Manifest, findings: readonly Finding[]): Promise<void> {
  const lines = findings.map(
    ({ line, severity, text }) => `${file}:${line}: ${severity}: ${text}\n`,
  );
  await io.out(lines.join(""));
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}
