/**
 * `lockedcron redis-password`: makes the passwords of the chart's Redis once, and replaces them without a moment in which
 * some password is right for one side only. Run by a Job of the chart.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createKubeClient,
  hasReason,
  loadKubeConfig,
  resourceType,
  type KubeClient,
  type KubeObject,
} from "../kube/index.ts";
import { misuse, type Command, type ExitCode, type Io } from "./command.ts";
import { quote, readFlags } from "./flags.ts";

const USAGE = `Usage: lockedcron redis-password --namespace NAME --secret NAME [options]

Fills a Secret that is there already: each key that is missing gets a password of its own; what is there stays.

  --secret NAME       the Secret
  --namespace NAME    its namespace
  --keys KEY,...      what it is to hold (default: password)
  --rotation ID       replaces the passwords once for each ID. Redis must accept next-KEY and previous-KEY beside KEY;
                      between the three steps (announce, replace, forget) it and the operator are left time to read
  --settle-seconds N  how long that is (default: 150; the kubelet takes up to 90 to show a change to a pod)
  --kubeconfig FILE   credentials (default: KUBECONFIG, ~/.kube/config, the service account of the pod)
  --context NAME      context of the kubeconfig (default: its current one)
  -h, --help          this text

Exit code: 0, 1 when the Secret cannot be read or written, 2 for a wrong call.
`;

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

const secrets = resourceType<Secret>("v1", "Secret", "secrets");
const ROTATION_ANNOTATION = "lockedcron.io/redis-password-rotation";
/** Where a rotation stands, so that one that was interrupted goes on where it was. */
const STEP_ANNOTATION = "lockedcron.io/redis-password-step";
const SETTLE_SECONDS = 150;
const MAX_TRIES = 5;
/** 256 bits, without characters that a configuration file or a URL would have to quote. */
const PASSWORD_BYTES = 32;

export const redisPassword: Command = {
  async run(argv, io) {
    const { values, positionals, problems } = readFlags(argv, {
      secret: { type: "string" },
      namespace: { type: "string" },
      keys: { type: "string" },
      rotation: { type: "string" },
      "settle-seconds": { type: "string" },
      kubeconfig: { type: "string" },
      context: { type: "string" },
    });
    if (values.help === true) {
      await io.out(USAGE);
      return 0;
    }
    const text = (name: string): string | undefined =>
      typeof values[name] === "string" ? values[name] : undefined;
    for (const word of positionals) problems.push(`${quote(word)}: belongs to no flag`);
    const [namespace = "", name = ""] = [text("namespace"), text("secret")];
    if (namespace === "") problems.push("--namespace: is missing");
    if (name === "") problems.push("--secret: is missing");
    const keys = (text("keys") ?? "password").split(",").filter((key) => key !== "");
    for (const key of keys.filter((wanted) => !/^[\w.-]{1,200}$/.test(wanted))) {
      problems.push(`--keys: ${quote(key)} can not be a key of a Secret`);
    }
    const settle = text("settle-seconds") ?? String(SETTLE_SECONDS);
    if (!/^\d{1,4}$/.test(settle)) {
      problems.push(`--settle-seconds: ${quote(settle)} is not a whole number from 0 to 9999`);
    }
    if (problems.length > 0) return misuse(io, "redis-password", problems);
    await using client = createKubeClient({
      config: () => loadKubeConfig({ file: text("kubeconfig"), context: text("context") }),
      userAgent: "lockedcron-cli",
    });
    const settleMs = Number(settle) * 1000;
    const rotation = text("rotation");
    const job = { client, io, namespace, name, keys, settleMs };
    try {
      return await (rotation === undefined ? fill(job) : rotate(job, rotation));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      io.error(`lockedcron redis-password: ${message}\n`);
      return 1;
    }
  },
};

interface Task {
  client: KubeClient;
  io: Io;
  namespace: string;
  name: string;
  keys: readonly string[];
  settleMs: number;
}

const newPassword = (): string =>
  Buffer.from(randomBytes(PASSWORD_BYTES).toString("base64url")).toString("base64");

/** Read, change, compare-and-set; another Job may do the same. `change` returns undefined when nothing is to be done. */
async function edit(
  { client, namespace, name }: Task,
  change: (secret: Secret) => Secret | undefined,
): Promise<Secret> {
  for (let tries = 1; ; tries++) {
    const secret = await client.get(secrets, { namespace, name });
    const next = change(secret);
    if (next === undefined) return secret;
    try {
      return await client.update(secrets, next);
    } catch (error) {
      if (!hasReason(error, "Conflict") || tries >= MAX_TRIES) throw error;
    }
  }
}

function filled(secret: Secret, keys: readonly string[]): Secret | undefined {
  const missing = keys.filter((key) => (secret.data?.[key] ?? "") === "");
  if (missing.length === 0) return undefined;
  const made = Object.fromEntries(missing.map((key) => [key, newPassword()]));
  return { ...secret, data: { ...secret.data, ...made } };
}

async function fill(task: Task): Promise<ExitCode> {
  let made = false;
  await edit(task, (secret) => {
    const next = filled(secret, task.keys);
    made = next !== undefined;
    return next;
  });
  await task.io.out(made ? "passwords made\n" : "the passwords are there already\n");
  return 0;
}

function annotate(secret: Secret, annotations: Record<string, string>): Secret {
  const { metadata } = secret;
  return {
    ...secret,
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } },
  };
}

type Step = "announced" | "replaced" | "done";

/** What each step leaves in the Secret. */
function after(step: Step, secret: Secret, keys: readonly string[]): Record<string, string> {
  const data = { ...secret.data };
  for (const key of keys) {
    const [next, previous] = [`next-${key}`, `previous-${key}`];
    switch (step) {
      case "announced":
        data[next] = newPassword();
        break;
      case "replaced":
        data[previous] = data[key] ?? "";
        data[key] = data[next] ?? "";
        delete data[next];
        break;
      case "done":
        delete data[previous];
        break;
    }
  }
  return data;
}

const FOLLOWING: Readonly<Record<Step, Step | undefined>> = {
  announced: "replaced",
  replaced: "done",
  done: undefined,
};

async function rotate(task: Task, id: string): Promise<ExitCode> {
  await fill(task);
  let step: Step | undefined;
  for (;;) {
    let wanted: Step | undefined;
    const secret = await edit(task, (current) => {
      const { annotations = {} } = current.metadata;
      const at = annotations[STEP_ANNOTATION] as Step | undefined;
      // One that was interrupted comes to its end under its own name, before the next begins.
      const running = at !== undefined && at !== "done";
      const same = annotations[ROTATION_ANNOTATION] === id;
      wanted = running ? FOLLOWING[at] : same ? undefined : "announced";
      // Its time to settle began when the step was written, by whomever: it is waited for in full.
      if (wanted === undefined || (running && step !== at)) return undefined;
      const name = running ? (annotations[ROTATION_ANNOTATION] ?? id) : id;
      const next = annotate(current, { [ROTATION_ANNOTATION]: name, [STEP_ANNOTATION]: wanted });
      return { ...next, data: after(wanted, current, task.keys) };
    });
    const reached = secret.metadata.annotations?.[STEP_ANNOTATION] as Step | undefined;
    if (wanted === undefined) {
      await task.io.out(`rotation ${quote(id)} is done\n`);
      return 0;
    }
    step = reached;
    await task.io.out(`passwords ${reached}\n`);
    if (reached !== "done") await sleep(task.settleMs);
  }
}
