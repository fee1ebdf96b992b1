/**
 * Whether the API server would take the Job that the template renders: asked by a dry run once for each generation, long
 * before the night in which it matters. Schema, quota, PodSecurity and webhooks all have their say.
 */
import { EventReason } from "../api/reasons.ts";
import type { Key } from "../api/names.ts";
import type { Job, LockedCronJob } from "../api/types.ts";
import type { Clock } from "../clock.ts";
import { buildJob } from "../domain/job.ts";
import type { TemplateVerdict } from "../domain/conditions.ts";
import { isKubeError, type KubeClient, type ResourceType } from "../kube/index.ts";
import type { EventSink } from "./ports.ts";

export interface TemplateCheck {
  /** undefined when the API server gave no verdict; `recheckAt` (wall clock, ms) when it may change without an edit. */
  verdict(key: Key, owner: LockedCronJob): Promise<TemplateVerdict | undefined>;
  recheckAt(key: Key): number | undefined;
  forget(key: Key): void;
}

/** A refusal may go without an edit (quota, rights, a webhook): looked at again so often, ms. */
const RECHECK_MS = 60_000;

interface Known {
  uid: string;
  generation: number;
  /** undefined: no verdict was had. */
  verdict: TemplateVerdict | undefined;
  /** Infinity when it holds until the next edit. */
  until: number;
}

export function createTemplateCheck(o: {
  client: Pick<KubeClient, "create">;
  jobs: ResourceType<Job>;
  clock: Clock;
  events: EventSink;
}): TemplateCheck {
  const known = new Map<Key, Known>();

  async function ask(owner: LockedCronJob): Promise<TemplateVerdict | undefined> {
    try {
      await o.client.create(o.jobs, probeOf(owner, o.clock.now()), {
        dryRun: true,
        fieldValidation: "Strict",
        priority: "low",
      });
      return { accepted: true, message: "the API server takes the Job that it renders" };
    } catch (error) {
      if (!isKubeError(error)) throw error;
      // Names are looked at last: everything else was found to be well.
      if (error.reason === "AlreadyExists") {
        return { accepted: true, message: "the API server takes the Job that it renders" };
      }
      const isVerdict = error.status >= 400 && error.status < 500 && error.status !== 429;
      return isVerdict ? { accepted: false, message: error.message } : undefined;
    }
  }

  return {
    async verdict(key, owner) {
      const { uid, generation = 0 } = owner.metadata;
      const before = known.get(key);
      const isCurrent = before?.uid === uid && before.generation === generation;
      if (isCurrent && o.clock.now() < before.until) return before.verdict;
      const told = isCurrent ? undefined : toldBy(owner);
      const verdict = told?.accepted === true ? told : await ask(owner);
      const until = verdict?.accepted === true ? Infinity : o.clock.now() + RECHECK_MS;
      known.set(key, { uid, generation, verdict, until });
      if (verdict?.accepted === false && verdict.message !== before?.verdict?.message) {
        const message = `The Job of this template would be refused: ${verdict.message}`;
        o.events.event(owner, "Warning", EventReason.TemplateRejected, message);
      }
      return verdict;
    },
    recheckAt(key) {
      const until = known.get(key)?.until ?? Infinity;
      return until === Infinity ? undefined : until;
    },
    forget(key) {
      known.delete(key);
    },
  };
}

/** What the status says already of this generation: also another replica, or this one before a restart, may have asked. */
export function toldBy({ metadata, status }: LockedCronJob): TemplateVerdict | undefined {
  const told = status?.conditions?.find((c) => c.type === "TemplateAccepted");
  if (told === undefined || told.observedGeneration !== metadata.generation) return undefined;
  return { accepted: told.status === "True", message: told.message };
}

function probeOf(owner: LockedCronJob, now: number): Job {
  const run = {
    tick: now,
    runId: "dry-run",
    jobName: `${owner.metadata.name}-dry-run`,
    token: 0,
    lockKey: "",
    lockValue: "",
    attempts: [],
    why: "",
  };
  return buildJob(owner, run, 0, { timestamp: new Date(now).toISOString(), names: [] }) as Job;
}
