/** What the controller and the watches tell, as log lines, metrics and readiness checks. */
import { DEBUG_EVENTS, Reason } from "../api/reasons.ts";
import type { Clock } from "../clock.ts";
import { isFence } from "../controller/member-lease.ts";
import type { EventSink, Observer } from "../controller/ports.ts";
import type { SkewMeter } from "../controller/skew.ts";
import { clockSkewMessage, isClockWrong } from "../domain/decide/index.ts";
import { isKubeError, type ReflectorHealth } from "../kube/index.ts";
import type { Health, Logger, LogLevel, Metrics } from "../telemetry/index.ts";
import type { Troubles } from "./troubles.ts";

/** What somebody can do about a check that fails. */
const WAY_OUT = {
  crd: "apply crds/lockedcronjobs.yaml",
  rbac: "bind the operator's ClusterRole (deploy/rbac.yaml)",
  "api-server": "trying again by itself",
};

/** @param watch which one; several may be of the same resource */
export function onWatchHealth(
  h: ReflectorHealth,
  watch: string,
  troubles: Troubles,
  metrics: Metrics,
  log: Logger,
): void {
  const trouble = h.lastError;
  if (trouble === undefined) {
    troubles.clear(`watch ${watch}`);
    log.info("watch recovered", { event: "WatchRecovered", resource: h.resource });
    return;
  }
  metrics.watchRestart({ resource: h.resource, reason: trouble.reason });
  const missing = trouble.reason === "NotFound" && h.resource.startsWith("lockedcronjobs");
  const check = missing ? "crd" : trouble.reason === "Forbidden" ? "rbac" : "api-server";
  const way = WAY_OUT[check];
  troubles.set(`watch ${watch}`, check, `${h.resource}: ${trouble.message}; ${way}`);
  // The first failure and then each tenth: a server that is away for an hour must not fill the disk.
  if (trouble.consecutive % 10 !== 1) return;
  log.warn("watch fails", {
    event: "WatchTrouble",
    resource: h.resource,
    reason: `${trouble.reason}: ${trouble.message}`,
    next: way,
  });
}

export function onMembership(trouble: string | undefined, health: Health, log: Logger): void {
  if (trouble === undefined) {
    health.set("membership", { ok: true });
    return;
  }
  health.set("membership", { ok: false, reason: trouble });
  log.warn("membership Lease not renewed", {
    event: "MembershipTrouble",
    reason: trouble,
    next: "the others count this replica as silent and go on",
  });
}

/** Said again only when something else is wrong: a look is taken every few seconds. */
export function onMembershipTrouble(log: Logger): (what: string, error: unknown) => void {
  let said = "";
  return (what, error) => {
    const reason = error instanceof Error ? error.message : String(error);
    if (said === `${what} ${reason}`) return;
    said = `${what} ${reason}`;
    log.warn(what, { event: "MembershipTrouble", reason });
  };
}

/** Another process took this one's Lease: one of the same name, or one that took it for dead. */
export function onSuperseded(by: string, replica: string, health: Health, log: Logger): void {
  const fenced = isFence(by);
  const reason = fenced
    ? `this process was silent for so long that another replica took its Lease (${by})`
    : `process ${by} runs under the same replica name ${replica}`;
  health.set("membership", { ok: false, reason });
  log.error("another process has taken this replica's place", {
    event: "Superseded",
    reason,
    next: fenced
      ? "this process ends; a new one takes its place"
      : "this process ends; give each replica a --replica of its own",
  });
}

/**
 * Readiness, metric and log of this replica's clock; asked each time, since a clock that is set shows at once. Returns what
 * is to be called now and then.
 */
export function createClockReport(
  skew: Pick<SkewMeter, "skewMs">,
  health: Health,
  metrics: Metrics,
  log: Logger,
): () => void {
  let wasWrong = false;
  health.watch("clock", "readyz", () => {
    const skewMs = skew.skewMs();
    return isClockWrong({ clockSkewMs: skewMs })
      ? { ok: false, reason: clockSkewMessage(skewMs) }
      : { ok: true };
  });
  return () => {
    const skewMs = skew.skewMs();
    metrics.clockSkew(skewMs / 1000);
    const wrong = isClockWrong({ clockSkewMs: skewMs });
    if (wrong === wasWrong) return;
    wasWrong = wrong;
    const event = Reason.ClockSkew;
    if (wrong) log.error("the clock is wrong", { event, reason: clockSkewMessage(skewMs) });
    else log.info("the clock agrees with the API server's again: taking ticks", { event });
  };
}

/** One line in ten seconds stands for all: while the API server is away, every status of every LockedCronJob fails. */
const STATUS_TROUBLE_MS = 10_000;

export function createStatusReport(
  log: Logger,
  clock: Pick<Clock, "monotonic">,
): (key: string, error: unknown) => void {
  let quietUntil = -Infinity;
  let more = 0;
  return (key, error) => {
    if (clock.monotonic() < quietUntil) {
      more++;
      return;
    }
    quietUntil = clock.monotonic() + STATUS_TROUBLE_MS;
    log.warn("status not written", {
      event: "StatusTrouble",
      key,
      error,
      ...(more === 0 ? {} : { unsaid: more }),
      next: "retry",
    });
    more = 0;
  };
}

/** Leaves out the events for debugging, unless the operator logs at that level. */
export function eventsAtLevel(events: EventSink, level: LogLevel): EventSink {
  if (level === "debug") return events;
  return {
    event(regarding, type, reason, message) {
      if (!DEBUG_EVENTS.includes(reason)) events.event(regarding, type, reason, message);
    },
  };
}

/** One log line per event, and the metrics. Steps that found nothing to do are for debug. */
export function createObserver(log: Logger, metrics: Metrics, troubles: Troubles): Observer {
  /** A right that is missing shows in readiness until the same action goes through. */
  function noteRights(action: string, error: unknown): void {
    if (isKubeError(error) && error.reason === "Forbidden") {
      troubles.set(action, "rbac", `${error.message}; ${WAY_OUT.rbac}`);
    } else if (error === undefined) {
      troubles.clear(action);
    }
  }

  return {
    step({ key, action, reason, message, outcome, tick, error, ...rest }) {
      noteRights(action, error);
      const fields = {
        event: action,
        key,
        reason,
        outcome,
        ...(tick === undefined ? {} : { tick: new Date(tick) }),
        ...rest,
      };
      if (error !== undefined) log.warn(message, { ...fields, error, next: "retry with back-off" });
      // Said already, by "Launched".
      else if (outcome === "created") log.debug(message, fields);
      else log.info(message, fields);
    },
    elected({ key, tick, outcome, ms }) {
      metrics.election({ outcome, seconds: ms / 1000 });
      log.info(`election ${outcome}`, { event: "Elected", key, tick: new Date(tick), outcome, ms });
    },
    launched({ key, tick, latencyMs, rank, ...run }) {
      if (latencyMs !== undefined) {
        metrics.tickLaunched({ latencySeconds: latencyMs / 1000, rank });
      }
      log.info("Job created", {
        event: "Launched",
        key,
        tick: new Date(tick),
        latencyMs,
        rank,
        ...run,
      });
    },
    missed({ key, reason, count }) {
      metrics.tickMissed({ reason, count });
      log.warn(`${count} tick(s) will not run`, { event: "Missed", key, reason, count });
    },
    claimConflict: metrics.claimConflict,
    takeover: metrics.takeover,
    jobCreate: (outcome) => metrics.jobCreate({ outcome }),
    mutexWait({ key, outcome, ms }) {
      metrics.mutexWait({ outcome, seconds: ms / 1000 });
      log.info(outcome === "taken" ? "mutexes taken" : "mutexes busy, tick given up", {
        event: "MutexWait",
        key,
        outcome,
        ms,
      });
    },
    mutexBusy({ key, mutex }) {
      metrics.mutexBusy();
      log.info("a tick waits for a mutex", { event: "MutexBusy", key, mutex });
    },
    lockTakenOver: metrics.lockTakenOver,
    lockHeld: ({ ms }) => metrics.lockHeld({ seconds: ms / 1000 }),
    lockRenewal: metrics.lockRenewal,
  };
}
