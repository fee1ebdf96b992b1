/** What commands share that take the operator's own settings and look at the world as it does. */
import { loadConfig, type Config } from "../config.ts";
import { createKubeClient, loadKubeConfig, type KubeClient } from "../kube/index.ts";
import type { Command, ExitCode, Io } from "./command.ts";

/** Whatever goes wrong in `work` is one line and exit code 1. */
export function asOperator(
  name: string,
  usage: string,
  work: (config: Config, client: KubeClient, io: Io) => Promise<ExitCode>,
): Command {
  return {
    async run(argv, io) {
      const loaded = loadConfig({ argv, env: io.env });
      if (loaded.kind === "help") {
        await io.out(usage);
        return 0;
      }
      if (loaded.kind !== "config") {
        const text = loaded.kind === "invalid" ? loaded.text : "takes no --version\n";
        io.error(`lockedcron ${name}: ${text}`);
        return 2;
      }
      const { config } = loaded;
      await using client = createKubeClient({
        config: () => loadKubeConfig({ file: config.kubeconfig, context: config.context }),
        userAgent: "lockedcron-cli",
        timeoutMs: config.kubeTimeoutMs,
      });
      try {
        return await work(config, client, io);
      } catch (error) {
        io.error(`lockedcron ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
        return 1;
      }
    },
  };
}
