/**
 * Who the replicas are: one Lease each, renewed by its process. Whether another one lives is judged by the time since
 * its Lease was last seen to change, on our own clock, never by comparing clocks.
 *
 * It also proves deaths. What proves that a process can send nothing any more is that its Lease names another one: by
 * compare-and-set a newer process of the same replica has taken it, or we have (a fence), and no process sends without
 * having held its Lease a moment ago (member-lease.ts). A pod that is gone, or a long silence, is only the occasion to
 * fence: a pod that was deleted by force may still run, and a process that is silent may be paused and go on later.
 */
import type { KubeObject, Lease } from "../api/types.ts";
import { rankOf } from "../domain/election.ts";
import { hasReason } from "../kube/index.ts";
import type { ResourceType } from "../kube/index.ts";
import { REQUEST_BOUND_MS } from "./attempts.ts";
import {
  createMemberLease,
  fenceOf,
  isFence,
  leaseFor,
  memberLeaseName,
  podOf,
  processOf,
  replicaOf,
  type MemberLeaseOptions,
} from "./member-lease.ts";
import type { Members } from "./ports.ts";
import { isNewer } from "./versions.ts";

export interface MembershipOptions extends Omit<
  MemberLeaseOptions,
  "trustMs" | "onRenewed" | "onTaken"
> {
  pods: ResourceType<KubeObject>;
  /** Default REQUEST_BOUND_MS; shorter only in tests. */
  requestBoundMs?: number;
  onChange(): void;
  /** The Lease that this process held was taken from it: it may send nothing any more and is to end. */
  onSuperseded(by: string): void;
  /** A ledger knows of an attempt of this replica that is not settled. */
  owes(replica: string): boolean;
}

export interface Membership extends Members, AsyncDisposable {
  /**
   * How many replicas go before this one for a key. One that could not renew its own Lease goes last: it would win
   * elections that it cannot turn into claims.
   */
  rank(key: string): number;
  observe(lease: Lease): void;
  observeDeleted(lease: Lease): void;
  /** Begins to renew; resolves after the first try, whatever came of it. */
  start(): Promise<void>;
  /** Gives the Lease up, so that the others need not wait for it to run out. */
  resign(): Promise<void>;
}

interface Seen {
  replica: string;
  process: string;
  podName: string | undefined;
  renewTime: string;
  /** Monotonic time of the last change of renewTime. */
  changedAt: number;
  durationMs: number;
  version: { uid: string; resourceVersion: string };
  /** The Lease was deleted; what it told is kept. */
  gone: boolean;
}

/** How long a process may send after it last held its Lease, at the most, ms. Counted in by REQUEST_BOUND_MS. */
const TRUST_MS = 15_000;
/** How often a suspect is looked into, ms. */
const LOOK_MS = 10_000;
/**
 * A process that gave no sign of life for so long is fenced whatever its pod says, ms. By then the kernel has given up what
 * a paused process left in an open socket (tcp_retries2: 924.6 s with the defaults of Linux, less REQUEST_BOUND_MS).
 */
const LONG_SILENCE_MS = 900_000;
/** Leases of replicas that are gone for good are kept so long, ms; longer than GONE_FOR_GOOD_MS. */
const COLLECT_MS = 3_600_000;

export function createMembership(o: MembershipOptions): Membership {
  const seen = new Map<string, Seen>();
  /** Processes proven dead, and since when (monotonic) we know. */
  const deadSince = new Map<string, number>();
  /** Processes that somebody waits for: since when, and when they were last looked into. */
  const suspects = new Map<string, { since: number; lookedAt: number }>();
  const requestBoundMs = o.requestBoundMs ?? REQUEST_BOUND_MS;
  /** Each key that is looked at asks for it, and it is a hash. */
  const ownName = memberLeaseName(o.replica);
  let stopped = false;
  const own = createMemberLease({
    ...o,
    trustMs: Math.min(TRUST_MS, o.leaseSeconds * 1000, requestBoundMs / 4),
    onRenewed(lease) {
      note(lease);
      void collect();
    },
    onTaken: o.onSuperseded,
  });

  function observe(lease: Lease): void {
    const process = processOf(lease);
    const isOwn = lease.metadata.name === ownName;
    if (isOwn) own.observe(lease);
    if (process === undefined || (isOwn && process !== o.process)) return;
    note(lease);
  }

  function note(lease: Lease): void {
    const process = processOf(lease);
    const { name, uid, resourceVersion } = lease.metadata;
    // Another replica's, or edited by hand: it tells nothing about the replica that it is named for.
    if (process === undefined || name !== memberLeaseName(replicaOf(process))) return;
    const old = seen.get(name);
    // ORDER: what a watch tells late is not taken for news. By it the process that has come since would be proven dead.
    if (old !== undefined && isNewer(old.version.resourceVersion, resourceVersion)) return;
    const renewTime = lease.spec?.renewTime ?? "";
    if (old !== undefined && old.process !== process) proveDead(old.process);
    const changed = old === undefined || old.renewTime !== renewTime || old.process !== process;
    seen.set(name, {
      replica: replicaOf(process),
      process,
      podName: podOf(lease) ?? old?.podName,
      renewTime,
      changedAt: changed ? o.clock.monotonic() : old.changedAt,
      durationMs: (lease.spec?.leaseDurationSeconds ?? o.leaseSeconds) * 1000,
      version: { uid, resourceVersion },
      gone: false,
    });
    if (old === undefined || old.gone || old.process !== process) o.onChange();
  }

  function proveDead(process: string): void {
    suspects.delete(process);
    if (process === o.process || deadSince.has(process)) return;
    deadSince.set(process, o.clock.monotonic());
    o.onChange();
  }

  function isFresh(member: Seen): boolean {
    if (member.gone || isFence(member.process)) return false;
    return o.clock.monotonic() - member.changedAt < member.durationMs;
  }

  function stateOf(process: string): "alive" | "silent" | "dead" | "past" {
    if (process === o.process) return "alive";
    const since = deadSince.get(process);
    if (since !== undefined) {
      return o.clock.monotonic() - since > requestBoundMs ? "past" : "dead";
    }
    const replica = replicaOf(process);
    if (replica === o.replica) {
      // ORDER: only once its Lease is ours. Until then it may run beside us, if two were given one name.
      if (own.held()) proveDead(process);
      return own.held() ? "dead" : "silent";
    }
    const member = seen.get(memberLeaseName(replica));
    if (member?.process === process && isFresh(member)) {
      suspects.delete(process);
      return "alive";
    }
    suspect(process);
    return "silent";
  }

  /** Asked again and again while somebody waits for the process, so it looks only now and then. */
  function suspect(process: string): void {
    if (stopped) return;
    const now = o.clock.monotonic();
    const known = suspects.get(process) ?? { since: now, lookedAt: -Infinity };
    if (now - known.lookedAt < LOOK_MS) return;
    suspects.set(process, { ...known, lookedAt: now });
    // Whatever cannot be asked now is asked again. Until it is answered, what the process left open stays so.
    void lookInto(process).catch((error: unknown) => {
      if (!hasReason(error, "Conflict", "AlreadyExists")) {
        o.onTrouble(`whether ${process} is dead cannot be found out`, error);
      }
    });
  }

  /**
   * ORDER: the Lease as it is now. Our copy may be older than the ledger that names the process, and show the one before it,
   * which does not prove that this one is dead. A process holds its Lease before it is named in any ledger.
   */
  async function lookInto(process: string): Promise<void> {
    const key = { namespace: o.namespace, name: memberLeaseName(replicaOf(process)) };
    const lease = await o.client.get(o.leases, key).catch((error: unknown) => {
      if (hasReason(error, "NotFound")) return undefined;
      throw error;
    });
    if (lease !== undefined) note(lease);
    const holder = lease === undefined ? undefined : processOf(lease);
    if (holder !== undefined && holder !== process) {
      proveDead(process);
      return;
    }
    const member = seen.get(key.name);
    const { podName } = member ?? {};
    if (holder !== undefined && member !== undefined && isFresh(member)) return;
    if (!isSilentForLong(process, member) && !(await isPodOver(process, podName))) return;
    const fence = { process: fenceOf(process, o.process), podName, leaseSeconds: o.leaseSeconds };
    const body = leaseFor(fence, o.namespace, o.clock.now(), lease);
    // By compare-and-set: should it be renewed meanwhile, then the process lives.
    note(
      lease === undefined
        ? await o.client.create(o.leases, body)
        : await o.client.update(o.leases, body),
    );
    proveDead(process);
  }

  function isSilentForLong(process: string, member: Seen | undefined): boolean {
    const asked = suspects.get(process)?.since ?? Infinity;
    const since = member?.process === process && !member.gone ? member.changedAt : asked;
    return o.clock.monotonic() - since >= LONG_SILENCE_MS;
  }

  async function isPodOver(process: string, podName: string | undefined): Promise<boolean> {
    if (podName === undefined) return false;
    try {
      const pod = await o.client.get(o.pods, { namespace: o.namespace, name: podName });
      return pod.metadata.uid !== replicaOf(process) || isOver(pod);
    } catch (error) {
      if (hasReason(error, "NotFound")) return true;
      throw error;
    }
  }

  /** The Leases of replicas that are gone for good, once nothing hangs on them. */
  async function collect(): Promise<void> {
    const now = o.clock.monotonic();
    for (const [name, { replica, changedAt, version, gone }] of seen) {
      if (replica === o.replica || now - changedAt < COLLECT_MS || o.owes(replica)) continue;
      if (!gone && rankOf(o.replica, live(), name) > 0) continue;
      const key = { namespace: o.namespace, name };
      try {
        if (!gone) await o.client.delete(o.leases, key, { preconditions: version });
      } catch (error) {
        // Renewed after all, or not to be deleted now: the next round looks again.
        if (!hasReason(error, "NotFound")) continue;
      }
      seen.delete(name);
      for (const process of deadSince.keys()) {
        if (replicaOf(process) === replica) deadSince.delete(process);
      }
    }
  }

  function live(): string[] {
    const replicas = new Set([o.replica]);
    for (const member of seen.values()) if (isFresh(member)) replicas.add(member.replica);
    return [...replicas];
  }

  return {
    observe,
    live,
    rank(key) {
      const member = seen.get(ownName);
      const members = live();
      const connected = member?.process === o.process && isFresh(member);
      return connected ? rankOf(o.replica, members, key) : members.length;
    },
    observeDeleted(lease) {
      const { name, uid } = lease.metadata;
      if (name === ownName) own.observeDeleted(lease);
      const member = seen.get(name);
      if (member?.version.uid === uid) seen.set(name, { ...member, gone: true });
      o.onChange();
    },
    stateOf,
    confirm: own.confirm,
    start: own.start,
    async resign() {
      stopped = true;
      await own.resign();
    },
    async [Symbol.asyncDispose]() {
      stopped = true;
      await own[Symbol.asyncDispose]();
    },
  };
}

/** All its containers have ended and none is started again: an evicted pod stays like this for days. */
function isOver(pod: KubeObject & { status?: { phase?: string } }): boolean {
  return pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded";
}
