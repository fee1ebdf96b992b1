/** What deploy/rbac.yaml permits, asked of the API server's own authorizer. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resourceType, type KubeClient, type KubeObject } from "../../src/kube/index.ts";
import { startCluster, type ControlPlaneCluster } from "../cluster/cluster.ts";
import { until } from "../cluster/proc.ts";
import {
  clientOf,
  installCrd,
  lockedCronJobs,
  manifest,
  objectOf,
  RBAC,
  type Manifest,
} from "./fixture.ts";

let cluster: ControlPlaneCluster;
let admin: KubeClient;

beforeAll(async () => {
  cluster = await startCluster({
    mode: "control-plane",
    // As OpenShift has it: blockOwnerDeletion needs a permission of its own.
    flags: { apiServer: { "enable-admission-plugins": "OwnerReferencesPermissionEnforcement" } },
    log: console.error,
  });
  admin = clientOf(cluster.adminKubeconfig);
  await installCrd(cluster);
  await cluster.kubectl(["apply", "--filename", RBAC]);
  await cluster.kubectl(["create", "namespace", "work"]);
  await inForce({ user: OPERATOR }, "delete", "batch/jobs", "work"); // by the ClusterRole
  await inForce({ user: OPERATOR }, "delete", "coordination.k8s.io/leases", "lockedcron-system"); // by the Role
});
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]();
  await cluster?.stop();
});

const OPERATOR = "system:serviceaccount:lockedcron-system:lockedcron";
const VERBS = "get list watch create update patch delete deletecollection".split(" ");
const accessReviews = resourceType<KubeObject & { spec: object; status?: { allowed: boolean } }>(
  "authorization.k8s.io/v1",
  "SubjectAccessReview",
  "subjectaccessreviews",
  false,
);

interface Subject {
  user: string;
  groups?: string[];
}

/** The verbs that a subject has on a resource such as `batch/jobs` or `lockedcron.io/lockedcronjobs/status`. */
const verbsOf = async (
  subject: Subject,
  resource: string,
  namespace: string,
  name = "",
): Promise<string> => {
  const [group, kind, subresource = ""] = resource.split("/");
  const allowed = await Promise.all(
    VERBS.map(async (verb) => {
      const review = await admin.create(accessReviews, {
        apiVersion: accessReviews.apiVersion,
        kind: accessReviews.kind,
        metadata: {},
        spec: {
          ...subject,
          resourceAttributes: { group, resource: kind, subresource, namespace, name, verb },
        },
      });
      return review.status?.allowed ? [verb] : [];
    }),
  );
  return allowed.flat().join(" ");
};

/** The authorizer reads roles from a cache that follows a moment later. */
const inForce = (subject: Subject, verb: string, resource: string, namespace: string) =>
  until(`${subject.user} may ${verb} ${resource}`, 30_000, async () =>
    (await verbsOf(subject, resource, namespace)).split(" ").includes(verb),
  );

test("are applied again without a change", async () => {
  const lines = (await cluster.kubectl(["apply", "--filename", RBAC])).trim().split("\n");
  expect(lines.filter((line) => !line.endsWith(" unchanged"))).toEqual([]);
});

test.each([
  ["work", "lockedcron.io/lockedcronjobs", "get list watch"],
  ["work", "lockedcron.io/lockedcronjobs/status", "patch"],
  ["work", "lockedcron.io/lockedcronjobs/finalizers", "update"],
  ["work", "batch/jobs", "get list watch create patch delete"],
  ["work", "/pods", "list watch"],
  ["work", "coordination.k8s.io/leases", "get list watch create update"],
  ["work", "/events", "create patch"],
  ["lockedcron-system", "coordination.k8s.io/leases", "get list watch create update delete"],
  ["lockedcron-system", "/pods", "get list watch"],
  ["work", "batch/jobs/status", ""],
  ["work", "batch/cronjobs", ""],
  ["work", "/secrets", ""],
  ["lockedcron-system", "/secrets", ""],
  ["work", "/configmaps", ""],
  ["work", "/serviceaccounts", ""],
  ["work", "/pods/exec", ""],
  ["", "/nodes", ""],
  ["", "rbac.authorization.k8s.io/clusterroles", ""],
  ["", "apiextensions.k8s.io/customresourcedefinitions", ""],
])("let the operator, in namespace %j, on %s: %s", async (namespace, resource, verbs) => {
  expect(await verbsOf({ user: OPERATOR }, resource, namespace)).toBe(verbs);
});

test("let the operator see of all namespaces kube-system alone", async () => {
  const namespaces = (name: string) => verbsOf({ user: OPERATOR }, "/namespaces", name, name);
  expect(await namespaces("kube-system")).toBe("get");
  expect(await namespaces("work")).toBe("");
});

test("can be given to a group of client certificates, by the lines that are commented out", async () => {
  const group = { user: "replica-1", groups: ["lockedcron:operators"] };
  expect(await verbsOf(group, "batch/jobs", "work")).toBe("");
  const uncommented = readFileSync(RBAC, "utf8").replace(
    /^( *)# (- kind: Group| {2}(?:apiGroup|name): )/gm,
    "$1$2",
  );
  await cluster.kubectl(["apply", "--filename=-"], { stdin: uncommented });
  await inForce(group, "delete", "batch/jobs", "work");
  await inForce(group, "get", "/pods", "lockedcron-system");
  expect(await verbsOf(group, "batch/jobs", "work")).toBe("get list watch create patch delete");
  expect(await verbsOf(group, "/pods", "lockedcron-system")).toBe("get list watch");
});

test("suffice to own a Job with blockOwnerDeletion", async () => {
  const owner = await admin.create(lockedCronJobs, objectOf(lockedCronJobs, manifest(), "work"));
  const job = (name: string) => ({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name,
      namespace: "work",
      finalizers: ["lockedcron.io/launch"],
      ownerReferences: [
        {
          apiVersion: lockedCronJobs.apiVersion,
          kind: lockedCronJobs.kind,
          name: "report",
          uid: owner.metadata.uid!,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: owner.spec.jobTemplate.spec,
  });
  const jobs = resourceType<Manifest>("batch/v1", "Job", "jobs");
  const { text } = await cluster.userKubeconfig({ user: OPERATOR });
  await using operator = clientOf(text);
  const created = await operator.create(jobs, job("report-1"));
  expect(created.metadata.ownerReferences).toHaveLength(1);

  // It is that permission: without it the API server refuses.
  await cluster.kubectl(["create", "clusterrole", "jobs-only", "--verb=create", "--resource=jobs"]);
  await cluster.kubectl([
    "create",
    "clusterrolebinding",
    "bob",
    "--clusterrole=jobs-only",
    "--user=bob",
  ]);
  await inForce({ user: "bob" }, "create", "batch/jobs", "work");
  await using bob = clientOf((await cluster.userKubeconfig({ user: "bob" })).text);
  await expect(bob.create(jobs, job("report-2"))).rejects.toThrow("cannot set blockOwnerDeletion");
});

test.each([
  ["view", "get list watch", "get list watch"],
  ["edit", VERBS.join(" "), "get list watch"],
  ["admin", VERBS.join(" "), "get list watch"],
])("join the built-in role %s", async (role, onObjects, onStatus) => {
  await cluster.kubectl([
    "create",
    "rolebinding",
    role,
    `--clusterrole=${role}`,
    `--user=${role}er`,
    "--namespace=work",
  ]);
  const user = { user: `${role}er` };
  // The built-in roles are put together by a controller.
  await until(
    `the role ${role} has them`,
    30_000,
    async () => (await verbsOf(user, "lockedcron.io/lockedcronjobs", "work")) === onObjects,
  );
  expect(await verbsOf(user, "lockedcron.io/lockedcronjobs/status", "work")).toBe(onStatus);
  expect(await verbsOf(user, "lockedcron.io/lockedcronjobs/finalizers", "work")).toBe("");
  expect(await verbsOf(user, "lockedcron.io/lockedcronjobs", "default")).toBe("");
});
