/** Readiness: may this replica serve? Liveness: would a restart help? */
export type Probe = "readyz" | "livez";

export interface Check {
  ok: boolean;
  /** Why not, or how well; one line. */
  reason?: string;
}

export interface NamedCheck extends Check {
  name: string;
}

/** Collects the checks that the parts of the operator contribute; it decides nothing by itself. */
export interface Health {
  /** A readiness check, pushed whenever its outcome changes. */
  readonly set: (name: string, check: Check) => void;
  /** A check that is asked for each time. One that throws counts as failed with its message. */
  readonly watch: (name: string, probe: Probe, check: () => Check) => void;
  readonly remove: (name: string) => void;
  readonly ready: () => boolean;
  /** All checks of a probe, in the order they were first named. */
  readonly report: (probe: Probe) => NamedCheck[];
}

/** The readiness checks of the operator: none of them may count as passed before it was made. */
export const HEALTH_CHECKS = [
  "api-server",
  "crd",
  "rbac",
  "redis-quorum",
  "caches-synced",
  "membership",
] as const;

const PENDING: Check = { ok: false, reason: "not checked yet" };

/** Checks named in `pending` fail until they are set for the first time. */
export function createHealth(options: { pending?: Iterable<string> } = {}): Health {
  const checks = new Map<string, { probe: Probe; check: () => Check }>();

  function watch(name: string, probe: Probe, check: () => Check): void {
    checks.set(name, { probe, check });
  }

  function set(name: string, check: Check): void {
    watch(name, "readyz", () => check);
  }

  function ask(check: () => Check): Check {
    try {
      return check();
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : String(error) };
    }
  }

  function report(probe: Probe): NamedCheck[] {
    return [...checks]
      .filter(([, entry]) => entry.probe === probe)
      .map(([name, entry]) => ({ name, ...ask(entry.check) }));
  }

  for (const name of options.pending ?? []) set(name, PENDING);
  return {
    set,
    watch,
    remove: (name) => void checks.delete(name),
    ready: () => report("readyz").every((check) => check.ok),
    report,
  };
}
