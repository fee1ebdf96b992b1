import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startCluster } from "./cluster.ts";
import type { Cluster, Mode } from "./cluster.ts";
import { openComponent } from "./component.ts";
import { ClusterError, messageOf, UsageError } from "./errors.ts";
import { guard } from "./guardian.ts";
import { cacheDir, clusterDir } from "./paths.ts";
import { isAlive } from "./proc.ts";
import { checkName, listRecords, loadRecord, reap, removeCluster } from "./state.ts";
import type { ClusterRecord } from "./state.ts";
import { ensureTools, TOOLS, toolStatus } from "./tools.ts";
import type { Tool } from "./tools.ts";

const MODES: Readonly<Record<Mode, string>> = {
  "control-plane": "etcd, API server, controller manager, scheduler; no root, no pods",
  nodes: "real pods: containerd, kubelet, kube-proxy per node in a network namespace; root",
  simulated: "nodes and pods played by kwok; no root",
  kind: "kind in Docker; needs a running Docker engine",
  existing: "the cluster of KUBECONFIG or --kubeconfig; nothing of it is ever deleted",
};

const HELP = `usage: node test/cluster/main.ts COMMAND [flags]

  up      start a cluster that stays       [--mode MODE] [--nodes N] [--name NAME] [--kubeconfig FILE]
  down    end one                          [--name NAME | --all] [--force]
  status  clusters, processes, how to use them
  tools   build binaries into the cache    [TOOL ...]   (${TOOLS.join(", ")})

modes (default: nodes as root, else simulated):
${Object.entries(MODES)
  .map(([mode, text]) => `  ${mode.padEnd(14)} ${text}`)
  .join("\n")}
`;

const DEFAULT_NAME = "dev";

const OPTIONS = {
  mode: { type: "string" },
  nodes: { type: "string" },
  name: { type: "string" },
  kubeconfig: { type: "string" },
  all: { type: "boolean" },
  force: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

type Flag = keyof typeof OPTIONS;

/** Which flags each command takes. */
const COMMANDS = {
  up: ["mode", "nodes", "name", "kubeconfig"],
  down: ["name", "all", "force"],
  status: [],
  tools: [],
  guard: ["name"], // the program beside the owner of a cluster, not for people
} satisfies Record<string, readonly Flag[]>;

type Command = keyof typeof COMMANDS;

interface Request {
  readonly command: Command;
  readonly words: readonly string[];
  readonly flags: ReturnType<typeof parse>["values"];
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Node's message goes on with advice for another case.
    throw new UsageError(messageOf(error).split(". ")[0] ?? "");
  }
}

const isCommand = (word: string): word is Command => Object.hasOwn(COMMANDS, word);

function read(argv: readonly string[]): Request | undefined {
  const { values, positionals } = parse(argv);
  const [command, ...words] = positionals;
  if (values.help || command === "help") return undefined;
  const known = "up, down, status or tools";
  if (command === undefined) throw new UsageError(`no command: say ${known}`);
  if (!isCommand(command)) throw new UsageError(`${command}: no such command; say ${known}`);
  const allowed: readonly string[] = COMMANDS[command];
  const mistakes = Object.keys(values)
    .filter((flag) => !allowed.includes(flag))
    .map((flag) => `${command} takes no --${flag}`);
  if (command !== "tools") mistakes.push(...words.map((word) => `${word}: unexpected`));
  if (mistakes.length > 0) throw new UsageError(mistakes.join("; "));
  return { command, words, flags: values };
}

function modeOf(text: string | undefined): Mode {
  if (text === undefined) return process.getuid?.() === 0 ? "nodes" : "simulated";
  if (Object.hasOwn(MODES, text)) return text as Mode;
  throw new UsageError(`--mode ${text}: must be one of ${Object.keys(MODES).join(", ")}`);
}

function numberOfNodes(mode: Mode, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (mode === "control-plane" || mode === "existing") {
    throw new UsageError(`--nodes ${text}: mode ${mode} has none to start`);
  }
  const value = Number(text);
  if (/^\d+$/.test(text) && value > 0) return value;
  throw new UsageError(`--nodes ${text}: must be a whole number of 1 or more`);
}

const log = (line: string): void => console.error(line);

const howTo = ({ dir, name }: { dir: string; name: string }): string =>
  [
    `  export KUBECONFIG=${join(dir, "admin.kubeconfig")} PATH=${join(dir, "bin")}:$PATH`,
    `  kubectl get all -A`,
    `  make cluster-down NAME=${name}`,
  ].join("\n");

async function up({ flags }: Request): Promise<void> {
  const mode = modeOf(flags.mode);
  const nodes = numberOfNodes(mode, flags.nodes);
  const name = checkName(flags.name ?? DEFAULT_NAME);
  if (flags.kubeconfig !== undefined && mode !== "existing") {
    throw new UsageError(`--kubeconfig goes with --mode existing, not ${mode}`);
  }
  await reap(log);
  const there = await loadRecord(name);
  if (there) return sayItIsThere(there, mode);
  const start = performance.now();
  const options = { mode, nodes, name, kubeconfig: flags.kubeconfig, keep: true, log };
  const cluster: Cluster = await startCluster(options);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`cluster ${name} is up in ${seconds} s at ${cluster.server}\n${howTo(cluster)}`);
}

async function sayItIsThere(record: ClusterRecord, mode: Mode): Promise<void> {
  const { name } = record;
  if (record.mode !== mode || !record.ready) {
    const state = record.ready ? `in mode ${record.mode}` : "being started by another run";
    throw new ClusterError(
      `cluster ${name} exists already, ${state}: end it with make cluster-down NAME=${name}, or choose another name`,
    );
  }
  console.log(`cluster ${name} is up already\n${howTo({ dir: clusterDir(name), name })}`);
}

async function down({ flags }: Request): Promise<void> {
  if (flags.all && flags.name !== undefined) throw new UsageError("say --name or --all, not both");
  const records = await listRecords();
  const chosen = flags.all
    ? records
    : records.filter(({ name }) => name === (flags.name ?? DEFAULT_NAME));
  if (chosen.length === 0) {
    const others = records.map(({ name }) => name).join(", ");
    console.log(
      flags.all
        ? "no cluster to end"
        : `no cluster ${flags.name ?? DEFAULT_NAME}${others && `; there are: ${others}`}`,
    );
    return;
  }
  const owned = chosen.filter(({ owner }) => owner !== null && isAlive(owner));
  if (owned.length > 0 && !flags.force) {
    const list = owned.map(({ name, owner }) => `${name} (process ${owner?.pid})`).join(", ");
    throw new ClusterError(
      `in use by a running process that ends its cluster itself: ${list}. Take another --name, or --force`,
    );
  }
  for (const { name } of chosen) {
    await removeCluster(name);
    console.log(`cluster ${name} is down`);
  }
}

async function componentLines(record: ClusterRecord): Promise<string[]> {
  const dir = clusterDir(record.name);
  const files = await readdir(join(dir, "components")).catch(() => []);
  return files
    .map((file) => openComponent(dir, file.replace(/\.json$/, ""), async () => true))
    .map(
      ({ name, pid, logFile }) =>
        `  ${name.padEnd(25)} ${String(pid ?? "stopped").padEnd(9)} ${logFile}`,
    );
}

function stateOf({ ready, owner }: ClusterRecord): string {
  if (owner === null) return "stays until cluster-down";
  if (!isAlive(owner)) return "left behind by a crash; the next start removes it";
  return `${ready ? "ends" : "being started, ends"} with process ${owner.pid}`;
}

async function status(): Promise<void> {
  const records = await listRecords();
  if (records.length === 0) console.log("no clusters; make cluster-up starts one");
  for (const record of records) {
    const { name, mode, createdAt } = record;
    console.log(`${name}  mode ${mode}, since ${createdAt}, ${stateOf(record)}`);
    console.log(
      [...(await componentLines(record)), howTo({ dir: clusterDir(name), name })].join("\n"),
    );
  }
  const tools = await toolStatus();
  const built = tools.filter(({ file }) => file).map(({ tool, version }) => `${tool} ${version}`);
  console.log(`binaries in ${cacheDir()}: ${built.join(", ") || "none yet (make cluster-tools)"}`);
}

async function tools({ words }: Request): Promise<void> {
  const unknown = words.filter((word) => !(TOOLS as string[]).includes(word));
  if (unknown.length > 0) {
    throw new UsageError(`${unknown.join(", ")}: no such tool; there are ${TOOLS.join(", ")}`);
  }
  const wanted = words.length > 0 ? (words as Tool[]) : TOOLS;
  const paths = await ensureTools(wanted, log);
  for (const tool of wanted) console.log(paths[tool]);
}

const ACTIONS: Readonly<Record<Command, (request: Request) => Promise<void>>> = {
  up,
  down,
  status,
  tools,
  guard: ({ flags }) => guard(checkName(flags.name ?? ""), process.stdin),
};

/** Runs one command; returns the exit code: 0, 1 (could not), 2 (wrongly asked). */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const request = read(argv);
    if (request) await ACTIONS[request.command](request);
    else console.log(HELP);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`${error.message}\nnode test/cluster/main.ts --help tells more`);
      return 2;
    }
    if (error instanceof ClusterError) {
      console.error(error.message);
      return 1;
    }
    throw error;
  }
}
