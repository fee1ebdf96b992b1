/** Admission that stands in the way of both controllers alike. */
import { resourceType, type KubeClient, type KubeObject } from "../../src/kube/index.ts";

type Policy = KubeObject & { spec: object };
const GROUP = "admissionregistration.k8s.io/v1";
const policies = resourceType<Policy>(
  GROUP,
  "ValidatingAdmissionPolicy",
  "validatingadmissionpolicies",
  false,
);
const bindings = resourceType<Policy>(
  GROUP,
  "ValidatingAdmissionPolicyBinding",
  "validatingadmissionpolicybindings",
  false,
);

/** Labels of Jobs that are not created, and of Jobs that are not deleted. */
export const REFUSE = { refuse: "create" };
export const KEEP = { refuse: "delete" };

export async function refuseJobs(client: KubeClient): Promise<void> {
  for (const [verb, object] of [
    ["create", "object"],
    ["delete", "oldObject"],
  ] as const) {
    const name = `refuse-${verb}`;
    await client.create(policies, {
      apiVersion: GROUP,
      kind: "ValidatingAdmissionPolicy",
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ["batch"],
              apiVersions: ["v1"],
              resources: ["jobs"],
              operations: [verb.toUpperCase()],
            },
          ],
        },
        validations: [
          {
            expression: `!has(${object}.metadata.labels) || !("refuse" in ${object}.metadata.labels) || ${object}.metadata.labels["refuse"] != "${verb}"`,
            message: `this test lets nobody ${verb} it`,
          },
        ],
      },
    });
    await client.create(bindings, {
      apiVersion: GROUP,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"] },
    });
  }
}
