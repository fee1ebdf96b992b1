/** What a log line tells of an error. Nothing else of it is read. */
export interface ErrorShape {
  name: string;
  message: string;
  code?: string | number;
  status?: number;
  stack?: string;
  cause?: unknown;
  errors?: unknown[];
}

const MAX_ERRORS = 10;

/**
 * The known fields of an error and no others: client libraries hang whole requests on their errors
 * (headers with a bearer token, the arguments of an AUTH command).
 */
export function errorShape(error: Error, stack: boolean): ErrorShape {
  const shape: ErrorShape = { name: error.name, message: error.message };
  if ("code" in error && (typeof error.code === "string" || typeof error.code === "number")) {
    shape.code = error.code;
  }
  if ("status" in error && typeof error.status === "number") shape.status = error.status;
  if (stack && error.stack !== undefined) shape.stack = error.stack;
  if (error.cause !== undefined) shape.cause = error.cause;
  if (error instanceof AggregateError) shape.errors = error.errors.slice(0, MAX_ERRORS);
  return shape;
}
