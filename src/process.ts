/** The operator as a process: settings in, signals in, exit code out. */
import { readFileSync } from "node:fs";
import { configSecrets, loadConfig, type Config } from "./config.ts";
import { tzdataVersion } from "./domain/schedule/index.ts";
import { createOperator, type OperatorOptions } from "./operator.ts";
import {
  createHealth,
  HEALTH_CHECKS,
  createLogger,
  createMetrics,
  createRedactor,
  startServer,
} from "./telemetry/index.ts";

/** What tests put in: faults at the steps of the protocol. */
export type Seams = Pick<OperatorOptions, "onStep" | "wrapClient" | "requestBoundMs">;

const { version } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { version: string };

/** Resolves with the exit code: 0 after a clean stop, 1 when it cannot go on, 2 when a setting is wrong. */
export async function runProcess(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  seams: Seams = {},
): Promise<number> {
  const loaded = loadConfig({ argv, env });
  switch (loaded.kind) {
    case "help":
      process.stdout.write(loaded.text);
      return 0;
    case "version":
      process.stdout.write(`${version}\n`);
      return 0;
    case "invalid":
      process.stderr.write(loaded.text);
      return 2;
    case "config":
      return run(loaded.config, loaded.warnings, seams);
  }
}

/** Runs until a signal; a second signal ends the process at once. */
async function run(config: Config, warnings: readonly string[], seams: Seams): Promise<number> {
  const redact = createRedactor(configSecrets(config));
  await using log = createLogger({
    level: config.logLevel,
    format: config.logFormat,
    replica: config.replica,
    redact,
  });
  for (const warning of warnings) log.warn(warning, { event: "Config" });
  const metrics = createMetrics({ version, tzdata: tzdataVersion });
  // The server answers before the operator starts: no check may count as passed until it was made.
  const health = createHealth({ pending: HEALTH_CHECKS });
  await using _server = await startServer({
    address: config.bindAddress,
    metrics,
    health,
    redact,
  });
  const superseded = Promise.withResolvers<"superseded">();
  const onSuperseded = (): void => superseded.resolve("superseded");
  const operator = createOperator({ config, log, metrics, health, onSuperseded, ...seams });
  const stop = new AbortController();
  const signalled = new Promise<"signalled">((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(130));
        resolve("signalled");
      });
    }
  });
  process.on("unhandledRejection", (error) => {
    log.error("unhandled rejection", { event: "UnhandledRejection", error });
  });
  const failed = new Promise<"failed">((resolve) => {
    operator.start(stop.signal).catch((error: unknown) => {
      if (stop.signal.aborted) return;
      log.error("the operator could not start", { event: "StartFailed", error });
      resolve("failed");
    });
  });
  const why = await Promise.race([signalled, superseded.promise, failed]);
  stop.abort();
  await operator.stop();
  return why === "signalled" ? 0 : 1;
}
