/**
 * Whether resourceVersion `a` is newer than `b`. Kubernetes documents them as comparable whole numbers for its own
 * types and custom resources since 1.35, and they have always been etcd revisions; a wrong answer here costs a
 * conflict, never a double launch.
 */
export function isNewer(a: string, b: string): boolean {
  if (a.length !== b.length) return a.length > b.length;
  return a > b;
}
