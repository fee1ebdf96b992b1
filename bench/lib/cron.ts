import { resourceType } from "../../src/kube/index.ts";

export const KINDS = {
  ours: resourceType("lockedcron.io/v1alpha1", "LockedCronJob", "lockedcronjobs"),
  native: resourceType("batch/v1", "CronJob", "cronjobs"),
};

/** A cron object of either kind whose Jobs are created suspended, so that no pods disturb. */
export function cron(kind: keyof typeof KINDS, name: string, namespace: string, schedule: string) {
  const template = {
    spec: { restartPolicy: "Never", containers: [{ name: "c", image: "busybox" }] },
  };
  return {
    apiVersion: KINDS[kind].apiVersion,
    kind: KINDS[kind].kind,
    metadata: { name, namespace },
    spec: {
      schedule,
      concurrencyPolicy: "Allow",
      jobTemplate: { spec: { suspend: true, template } },
    },
  };
}
