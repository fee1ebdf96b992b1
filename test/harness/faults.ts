/** Faults that a replica of the tests commits on itself: at a step of the launch protocol, or on one call's answer. */
import { KubeError, type KubeClient } from "../../src/kube/index.ts";
import type { StepHook } from "../../src/controller/ports.ts";
import type { Seams } from "../../src/process.ts";

export interface StepFault {
  /** After this step, before the process does anything else. */
  after: Parameters<StepHook>[0];
  /** Which time it is reached, from 1. Default 1. */
  nth?: number;
  /** namespace/name; default: any. */
  key?: string;
  /** SIGKILL, SIGSTOP (the test sends SIGCONT), or waiting until SIGUSR2 with the process alive. */
  do: "kill" | "stop" | "hold";
}

export interface CallFault {
  /** "create jobs", "update leases", "patch jobs" … */
  call: string;
  nth?: number;
  /** Part of the object's name; default: any. */
  name?: string;
  /** The call happens and its answer is lost; or it never happens and nobody knows. */
  do: "loseAnswer" | "loseRequest";
  /** The process is killed right after. */
  thenKill?: boolean;
}

export interface Faults {
  steps?: StepFault[];
  calls?: CallFault[];
  /** How long a request of the dead may be on its way, ms, instead of two minutes. */
  requestBoundMs?: number;
}

export const FAULTS_VARIABLE = "TEST_FAULTS";

export function faultSeams(faults: Faults): Seams {
  const { steps = [], calls = [], requestBoundMs } = faults;
  return {
    onStep: stepHook(steps),
    wrapClient: wrapper(calls),
    ...(requestBoundMs === undefined ? {} : { requestBoundMs }),
  };
}

function say(fields: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ event: "Fault", ...fields })}\n`);
}

function stepHook(faults: readonly StepFault[]): StepHook {
  const counts = new Map<StepFault, number>();
  return async (point, key) => {
    for (const fault of faults) {
      if (fault.after !== point || (fault.key !== undefined && fault.key !== key)) continue;
      const count = (counts.get(fault) ?? 0) + 1;
      counts.set(fault, count);
      if (count !== (fault.nth ?? 1)) continue;
      // ORDER: listening before it is said, or the signal that the test then sends would end the process.
      const released = new Promise<void>((go) => {
        if (fault.do === "hold") process.once("SIGUSR2", () => go());
      });
      say({ after: point, key, do: fault.do });
      if (fault.do === "kill") process.kill(process.pid, "SIGKILL");
      if (fault.do === "stop") process.kill(process.pid, "SIGSTOP");
      if (fault.do === "hold") await released;
      // The signal that stops us is delivered on a later turn of the event loop at the latest.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
}

function wrapper(faults: readonly CallFault[]): (client: KubeClient) => KubeClient {
  const counts = new Map<CallFault, number>();

  async function around<R>(
    call: string,
    name: string | undefined,
    send: () => Promise<R>,
  ): Promise<R> {
    const fault = faults.find((f) => {
      if (f.call !== call || (f.name !== undefined && !name?.includes(f.name))) return false;
      const count = (counts.get(f) ?? 0) + 1;
      counts.set(f, count);
      return count === (f.nth ?? 1);
    });
    if (fault === undefined) return send();
    if (fault.do === "loseAnswer") await send();
    say({ call, name, do: fault.do });
    if (fault.thenKill === true) process.kill(process.pid, "SIGKILL");
    throw new KubeError({
      action: `${call} ${name}`,
      message: `${call} ${name}: the connection was lost (fault of the test)`,
      status: 0,
      reason: "ConnectionLost",
      outcome: "unknown",
    });
  }

  return (client) => ({
    ...client,
    // A dry run creates nothing, and is no step of the protocol.
    create: (type, object, options) =>
      options?.dryRun === true
        ? client.create(type, object, options)
        : around(`create ${type.plural}`, object.metadata.name, () =>
            client.create(type, object, options),
          ),
    update: (type, object, options) =>
      around(`update ${type.plural}`, object.metadata.name, () =>
        client.update(type, object, options),
      ),
    patch: (type, key, patch, options) =>
      around(`patch ${type.plural}`, key.name, () => client.patch(type, key, patch, options)),
  });
}
