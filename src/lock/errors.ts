/** Why a configuration was refused. */
export type LockConfigCode =
  | "NoNodes"
  | "TwoNodes"
  | "DuplicateNode"
  | "BadUrl"
  | "BadLease"
  | "BadKey"
  | "BadValue"
  | "BadOption";

/**
 * A wrong configuration or a wrong argument: thrown at once, before anything is sent. The message names the field,
 * the value (never a password) and the way out.
 */
export class LockConfigError extends Error {
  readonly code: LockConfigCode;
  readonly field: string;

  constructor(code: LockConfigCode, field: string, message: string) {
    super(`${field}: ${message}`);
    this.name = "LockConfigError";
    this.code = code;
    this.field = field;
  }
}
