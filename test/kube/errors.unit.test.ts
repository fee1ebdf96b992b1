import { describe, expect, it } from "vitest";

import {
  errorOfAnswer,
  errorOfConnection,
  errorOfStatus,
  hasReason,
  isExpired,
  isUnknown,
} from "../../src/kube/errors.ts";

const status = (body: object): string =>
  JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", ...body });

describe("an answer of the server", () => {
  it.each([
    [400, "rejected"],
    [401, "rejected"],
    [403, "rejected"],
    [404, "rejected"],
    [409, "rejected"],
    [410, "rejected"],
    [422, "rejected"],
    [429, "rejected"],
    [408, "unknown"],
    [500, "unknown"],
    [502, "unknown"],
    [503, "unknown"],
    [504, "unknown"],
    [302, "unknown"],
  ] as const)("status %d: %s", (code, outcome) => {
    expect(errorOfAnswer("create x", code, undefined, "").outcome).toBe(outcome);
  });

  it("keeps the server's reason, message and details", () => {
    const body = status({
      code: 422,
      reason: "Invalid",
      message: "Job is invalid",
      details: { kind: "Job", causes: [{ field: "spec", reason: "FieldValueRequired" }] },
    });
    expect(errorOfAnswer("create jobs a/b", 422, undefined, body)).toMatchObject({
      action: "create jobs a/b",
      status: 422,
      reason: "Invalid",
      message: "Job is invalid",
      details: { causes: [{ field: "spec" }] },
    });
  });

  it("makes do with what a proxy says in its place", () => {
    const error = errorOfAnswer("get x", 502, undefined, "<html>Bad Gateway</html>");
    expect(error).toMatchObject({ status: 502, reason: "BadAnswer" });
    expect(error.message).toContain("Bad Gateway");
    expect(errorOfAnswer("get x", 404, undefined, "").reason).toBe("NotFound");
    expect(errorOfAnswer("get x", 404, undefined, "").message).toBe(
      "the server answered with status 404",
    );
  });

  it.each([
    ["the header", "86400", {}],
    ["the details", undefined, { retryAfterSeconds: 3_000_000 }],
  ])("does not wait for hours because %s asks for it", (_, header, details) => {
    const body = status({ code: 503, details });
    expect(errorOfAnswer("x", 503, header, body).retryAfterMs).toBe(30_000);
  });

  it("takes Retry-After from the header, else from the details", () => {
    const body = status({ code: 429, details: { retryAfterSeconds: 3 } });
    expect(errorOfAnswer("x", 429, "1", body).retryAfterMs).toBe(1000);
    expect(errorOfAnswer("x", 429, undefined, body).retryAfterMs).toBe(3000);
    expect(
      errorOfAnswer("x", 429, "Wed, 21 Oct 2026 07:28:00 GMT", body).retryAfterMs,
    ).toBeUndefined();
  });

  it("bounds the message", () => {
    const message = "x".repeat(100_000);
    expect(errorOfStatus("x", { code: 500, message }).message.length).toBeLessThan(2100);
  });
});

describe("no answer", () => {
  it.each([
    ["ECONNREFUSED", "ConnectionRefused"],
    ["ENOTFOUND", "UnknownHost"],
    ["EAI_AGAIN", "UnknownHost"],
    ["ECONNRESET", "ConnectionLost"],
    ["UND_ERR_SOCKET", "ConnectionLost"],
    ["UND_ERR_CONNECT_TIMEOUT", "ConnectionLost"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "TLSFailure"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "TLSFailure"],
    ["CERT_HAS_EXPIRED", "TLSFailure"],
  ])("%s is %s", (code, reason) => {
    const cause = Object.assign(new Error("broken"), { code });
    expect(errorOfConnection("x", cause, false)).toMatchObject({ reason, outcome: "rejected" });
    expect(errorOfConnection("x", cause, true)).toMatchObject({ reason, outcome: "unknown" });
  });
});

describe("what callers ask", () => {
  it("strange errors may have happened", () => {
    expect(isUnknown(new TypeError("bug"))).toBe(true);
    expect(isUnknown(errorOfStatus("x", { code: 409 }))).toBe(false);
  });

  it("expired: by status or by reason", () => {
    expect(isExpired(errorOfStatus("x", { code: 410, reason: "Gone" }))).toBe(true);
    expect(isExpired(errorOfStatus("x", { reason: "Expired" }))).toBe(true);
    expect(isExpired(errorOfStatus("x", { code: 404 }))).toBe(false);
    expect(isExpired(new Error("Expired"))).toBe(false);
  });

  it("reasons", () => {
    expect(hasReason(errorOfStatus("x", { code: 409 }), "NotFound", "Conflict")).toBe(true);
    expect(hasReason(new Error("Conflict"), "Conflict")).toBe(false);
  });
});
