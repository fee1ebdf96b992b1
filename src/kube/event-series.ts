import type { Clock } from "../clock.ts";
import { type KubeObject, objectKey } from "./resources.ts";

/**
 * Which event an occurrence belongs to: equal ones are one event with a count, and many that differ only in their
 * message are put together, as `kubectl describe` shows it for every controller (client-go's correlator does the same).
 */
export type EventType = "Normal" | "Warning";

export interface CoreEvent extends KubeObject {
  involvedObject: Record<string, string | undefined>;
  reason: string;
  message: string;
  type: EventType;
  source: { component: string };
  reportingComponent: string;
  reportingInstance: string;
  /** RFC 3339, whole seconds. */
  firstTimestamp: string;
  lastTimestamp: string;
  count: number;
}

export interface Occurrence {
  regarding: KubeObject;
  type: EventType;
  reason: string;
  message: string;
}

/** An event of which more may come; `state` is the writer's. */
export interface Series<S> {
  event: CoreEvent;
  lastSeen: number;
  state: S;
}

/** Equal events within this time are one. */
const WINDOW_MS = 600_000;
/** More different messages than this, of one object and reason within the window, are put together. */
const MAX_SIMILAR = 10;
const MAX_REMEMBERED = 5000;
/** The server's limit. */
const MAX_MESSAGE_BYTES = 1024;

export function createEventSeries<S>(options: {
  component: string;
  instance: string;
  clock: Clock;
  newState: () => S;
}): { of(occurrence: Occurrence): { series: Series<S>; merged: boolean } } {
  const { component, instance, clock, newState } = options;
  const known = new Map<string, Series<S>>();
  const similar = new Map<string, { messages: Set<string>; lastSeen: number }>();
  let sequence = 0;

  function tooManySimilar(group: string, message: string, now: number): boolean {
    let seen = similar.get(group);
    if (seen === undefined || now - seen.lastSeen >= WINDOW_MS) {
      seen = { messages: new Set(), lastSeen: now };
      remember(similar, group, seen);
    }
    seen.lastSeen = now;
    if (seen.messages.has(message)) return false;
    if (seen.messages.size >= MAX_SIMILAR) return true;
    seen.messages.add(message);
    return false;
  }

  function timestamp(): string {
    return `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
  }

  function build({ regarding, type, reason }: Occurrence, message: string): CoreEvent {
    const { name = "", namespace, uid, resourceVersion } = regarding.metadata;
    const { apiVersion, kind } = regarding;
    const at = timestamp();
    // "<object>.<hex>" as client-go names them; counter and instance keep replicas and events of one moment apart.
    const count = (sequence++ % 4096).toString(16).padStart(3, "0");
    const suffix = clock.now().toString(16) + count + hash(instance);
    return {
      apiVersion: "v1",
      kind: "Event",
      // Events of cluster-wide objects are kept in "default".
      metadata: { name: `${name.slice(0, 200)}.${suffix}`, namespace: namespace ?? "default" },
      involvedObject: { apiVersion, kind, name, namespace, uid, resourceVersion },
      reason,
      message,
      type,
      source: { component },
      reportingComponent: component,
      reportingInstance: instance.slice(0, 128),
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
  }

  return {
    of(occurrence) {
      const { regarding, type, reason } = occurrence;
      const message = cut(occurrence.message);
      const now = clock.monotonic();
      const group = [regarding.metadata.uid ?? objectKey(regarding), type, reason].join("\n");
      const combined = tooManySimilar(group, message, now);
      // Events put together share one series, which shows the newest message.
      const text = combined ? cut(`(combined from similar events): ${message}`) : message;
      const id = combined ? group : `${group}\n${message}`;
      const present = known.get(id);
      if (present !== undefined && now - present.lastSeen < WINDOW_MS) {
        present.event.count++;
        present.event.lastTimestamp = timestamp();
        present.event.message = text;
        present.lastSeen = now;
        return { series: present, merged: true };
      }
      const series = { event: build(occurrence, text), lastSeen: now, state: newState() };
      remember(known, id, series);
      return { series, merged: false };
    },
  };
}

/** A map that forgets what it learned first. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MAX_REMEMBERED) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}

/** At most 1,024 bytes of UTF-8, without half a character at the end. */
function cut(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= MAX_MESSAGE_BYTES) return message;
  let end = MAX_MESSAGE_BYTES - 3;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}...`;
}

/** Four hex digits of a text (FNV-1a, folded). */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  return ((value ^ (value >>> 16)) & 0xffff).toString(16).padStart(4, "0");
}
