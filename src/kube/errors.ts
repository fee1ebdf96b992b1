/**
 * One error type for everything that can go wrong between us and the API server. What a caller must know is not the
 * kind of failure but whether the server may have acted on the request: that is `outcome`.
 */

/** Why there was no answer of the server. Kubernetes' own reasons ("Conflict", "NotFound" …) stand beside these. */
export const TransportReason = {
  /** Our own deadline passed. */
  DeadlineExceeded: "DeadlineExceeded",
  /** The caller's signal aborted. */
  Aborted: "Aborted",
  ConnectionRefused: "ConnectionRefused",
  /** The connection could not be set up in time, or broke. */
  ConnectionLost: "ConnectionLost",
  UnknownHost: "UnknownHost",
  TLSFailure: "TLSFailure",
  /** kubeconfig, token file or exec plugin. */
  CredentialsFailure: "CredentialsFailure",
  /** An answer that is not what an API server says: no JSON, cut short, an unknown status. */
  BadAnswer: "BadAnswer",
} as const;
export type TransportReason = (typeof TransportReason)[keyof typeof TransportReason];

/** `rejected`: the server surely did not do it. `unknown`: it may have. */
export type CallOutcome = "rejected" | "unknown";

/** `details` of a meta/v1 Status. */
export interface StatusDetails {
  name?: string;
  kind?: string;
  group?: string;
  uid?: string;
  causes?: { reason?: string; message?: string; field?: string }[];
  retryAfterSeconds?: number;
}

export interface KubeErrorFields {
  /** What was tried, such as "create jobs team-a/report-29500000". */
  action: string;
  /** HTTP status, 0 when there was no answer. */
  status: number;
  /** A reason of Kubernetes or a TransportReason. */
  reason: string;
  message: string;
  outcome: CallOutcome;
  retryAfterMs?: number;
  details?: StatusDetails;
  cause?: unknown;
}

const MAX_MESSAGE_LENGTH = 2048;
/**
 * A proxy may ask for hours. Nobody would see a tick meanwhile, and more milliseconds than a timer takes make it ring at
 * once. The API server itself asks for a few seconds.
 */
const LONGEST_RETRY_AFTER_S = 30;

export class KubeError extends Error {
  readonly action: string;
  readonly status: number;
  readonly reason: string;
  readonly outcome: CallOutcome;
  readonly retryAfterMs: number | undefined;
  readonly details: StatusDetails | undefined;

  constructor(fields: KubeErrorFields) {
    const { message } = fields;
    super(
      message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message,
      fields.cause === undefined ? undefined : { cause: fields.cause },
    );
    this.name = "KubeError";
    this.action = fields.action;
    this.status = fields.status;
    this.reason = fields.reason;
    this.outcome = fields.outcome;
    this.retryAfterMs = fields.retryAfterMs;
    this.details = fields.details;
  }
}

export function isKubeError(error: unknown): error is KubeError {
  return error instanceof KubeError;
}

export function hasReason(error: unknown, ...reasons: string[]): error is KubeError {
  return isKubeError(error) && reasons.includes(error.reason);
}

/** True also of errors that are not ours: what cannot be placed may have happened. */
export function isUnknown(error: unknown): boolean {
  return !isKubeError(error) || error.outcome === "unknown";
}

/** The resource version asked for is gone: list again. */
export function isExpired(error: unknown): error is KubeError {
  return isKubeError(error) && (error.status === 410 || error.reason === "Expired");
}

interface StatusBody {
  kind?: unknown;
  code?: unknown;
  reason?: unknown;
  message?: unknown;
  details?: StatusDetails | null;
}

/** The reasons that a bare HTTP status stands for (apimachinery, NewGenericServerResponse). */
const REASON_OF_STATUS: Record<number, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Expired",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** 4xx is said before anything is stored; 408 and 5xx may be said of a request that went through. */
function outcomeOf(status: number): CallOutcome {
  return status >= 400 && status < 500 && status !== 408 ? "rejected" : "unknown";
}

/** An error from the server's answer: its Status object, or whatever stood in its place. */
export function errorOfAnswer(
  action: string,
  status: number,
  retryAfter: string | undefined,
  body: string,
): KubeError {
  const parsed = parseStatus(body);
  if (parsed !== undefined) return errorOfStatus(action, parsed, status, retryAfter);
  const text = body.trim().slice(0, 200);
  return new KubeError({
    action,
    status,
    reason: REASON_OF_STATUS[status] ?? TransportReason.BadAnswer,
    message: text === "" ? `the server answered with status ${status}` : text,
    outcome: outcomeOf(status),
    ...retryAfterOf(retryAfter, undefined),
  });
}

/** An error from a Status object, as it also comes in the ERROR event of a watch. */
export function errorOfStatus(
  action: string,
  body: StatusBody,
  httpStatus = 0,
  retryAfter?: string,
): KubeError {
  const status = typeof body.code === "number" ? body.code : httpStatus;
  const reason = typeof body.reason === "string" && body.reason !== "" ? body.reason : undefined;
  const details = body.details ?? undefined;
  return new KubeError({
    action,
    status,
    reason: reason ?? REASON_OF_STATUS[status] ?? TransportReason.BadAnswer,
    message:
      typeof body.message === "string" && body.message !== ""
        ? body.message
        : `the server answered with status ${status}`,
    outcome: outcomeOf(status),
    ...(details === undefined ? {} : { details }),
    ...retryAfterOf(retryAfter, details?.retryAfterSeconds),
  });
}

function parseStatus(body: string): StatusBody | undefined {
  try {
    const parsed = JSON.parse(body) as StatusBody | null;
    return parsed?.kind === "Status" ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function retryAfterOf(
  header: string | undefined,
  seconds: number | undefined,
): { retryAfterMs?: number } {
  const said = header === undefined ? seconds : Number(header);
  return said !== undefined && Number.isFinite(said) && said >= 0
    ? { retryAfterMs: Math.min(said, LONGEST_RETRY_AFTER_S) * 1000 }
    : {};
}

const REASON_OF_CODE: Record<string, TransportReason> = {
  ECONNREFUSED: TransportReason.ConnectionRefused,
  ENOTFOUND: TransportReason.UnknownHost,
  EAI_AGAIN: TransportReason.UnknownHost,
};

const TLS_CODE = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$)/u;

/** An error from below HTTP. `sent`: the request, or a part of it, may have reached the server. */
export function errorOfConnection(action: string, error: unknown, sent: boolean): KubeError {
  const code = (error as { code?: string } | null)?.code ?? "";
  const reason =
    REASON_OF_CODE[code] ??
    (TLS_CODE.test(code) ? TransportReason.TLSFailure : TransportReason.ConnectionLost);
  const text = error instanceof Error && error.message !== "" ? error.message : code;
  return new KubeError({
    action,
    status: 0,
    reason,
    message: `no answer from the API server: ${text}`,
    outcome: sent ? "unknown" : "rejected",
    cause: error,
  });
}
