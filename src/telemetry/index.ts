export { LOG_FORMATS, LOG_LEVELS, createLogger } from "./logger.ts";
export type {
  LogFields,
  LogFormat,
  Logger,
  LoggerOptions,
  LogLevel,
  RootLogger,
} from "./logger.ts";
export { createRedactor } from "./redact.ts";
export type { Redactor } from "./redact.ts";
export { createMetrics } from "./metrics.ts";
export type { Metrics, MetricsOptions } from "./metrics.ts";
export { createHealth, HEALTH_CHECKS } from "./health.ts";
export type { Check, Health, NamedCheck, Probe } from "./health.ts";
export { startServer } from "./server.ts";
export type { TelemetryServer, TelemetryServerOptions } from "./server.ts";
