import { runCli } from "../../src/cli/run.ts";

export const NOW = Date.parse("2026-11-30T12:00:00Z");

/** A command without a process: what it wrote, and its exit code. */
export async function call(
  argv: string[],
  stdin: string | readonly (string | Uint8Array)[] = [],
  now = () => NOW,
) {
  let out = "";
  let error = "";
  const code = await runCli(argv, {
    stdin: (async function* () {
      yield* typeof stdin === "string" ? [stdin] : stdin;
    })(),
    out(text) {
      out += text;
      return Promise.resolve(true);
    },
    error(text) {
      error += text;
    },
    now,
    env: {},
  });
  return { code, out, error };
}

/** A valid LockedCronJob, its spec as YAML lines. */
export const lockedCronJob = (...spec: string[]): string =>
  [
    "apiVersion: lockedcron.io/v1alpha1",
    "kind: LockedCronJob",
    "metadata:",
    "  name: report",
    "  namespace: team",
    "spec:",
    ...spec.map((line) => `  ${line}`),
    ...TEMPLATE,
  ].join("\n");

export const TEMPLATE = [
  "  jobTemplate:",
  "    spec:",
  "      template:",
  "        spec:",
  "          restartPolicy: Never",
  "          containers:",
  "            - name: main",
  "              image: busybox:1.36",
  "",
];
