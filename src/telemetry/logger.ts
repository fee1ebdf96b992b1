import { createLogger as createWinston, format, transports } from "winston";
import type { Clock, Timers } from "../clock.ts";
import { systemClock, systemTimers } from "../clock.ts";
import { createLineBuffer } from "./line-buffer.ts";
import { createRedactor } from "./redact.ts";
import type { Redactor } from "./redact.ts";

export const LOG_LEVELS = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ["json", "text"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** What a line says beside its message; one line tells one event. */
export interface LogFields {
  /** A reason constant or CamelCase name of what happened. */
  event?: string;
  /** namespace/name of the LockedCronJob. */
  key?: string;
  /** The scheduled instant. */
  tick?: Date | string;
  reason?: string;
  /** What happens next, in words or as an instant. */
  next?: string;
  /** Reduced to name, message, code, status and causes; with the stack at level debug only. */
  error?: unknown;
  [field: string]: unknown;
}

/** Message first, like winston and klog. Never throws; what it prints has gone through a Redactor. */
export interface Logger {
  error(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  debug(msg: string, fields?: LogFields): void;
  /** A logger that adds `fields` to each of its lines. */
  child(fields: LogFields): Logger;
}

export interface RootLogger extends Logger, AsyncDisposable {
  /** Resolves when every line is handed to the output, or two seconds later. Lines logged later are dropped. */
  close(): Promise<void>;
}

export interface LoggerOptions {
  level: LogLevel;
  format: LogFormat;
  /** Who speaks; a field of every line. */
  replica: string;
  redact?: Redactor;
  clock?: Clock;
  timers?: Timers;
  output?: NodeJS.WritableStream;
}

/** The first columns of every line, in this order. A field of the same name gets an underscore. */
interface Line {
  time: string;
  level: LogLevel;
  replica: string;
  event: string;
  msg: string;
  [field: string]: unknown;
}

/** Winston hands the finished text to its transports under this symbol (its `MESSAGE`). */
const MESSAGE = Symbol.for("message");
const LINE = Symbol("line");

/** How long the last lines may take, ms. */
const CLOSE_MS = 2_000;

const RANK: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2, debug: 3 };

function oneWord(text: string): string {
  return /^[^\s"=\p{C}]+$/u.test(text) ? text : JSON.stringify(text);
}

function plainText(line: Line): string {
  const { time, level, replica, event, msg, ...fields } = line;
  const pairs = Object.entries({ ...fields, replica }).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `${oneWord(name)}=${oneWord(text)}`;
  });
  // A line break or an escape sequence in a message must not forge a line of its own.
  const safe = /\p{C}/u.test(msg) ? JSON.stringify(msg) : msg;
  return [time, level.toUpperCase().padEnd(5), oneWord(event), safe, ...pairs].join(" ");
}

/** One line per event on `output`, as JSON or as text for people. */
export function createLogger(options: LoggerOptions): RootLogger {
  const { level: threshold, replica, clock = systemClock, redact = createRedactor() } = options;
  const output = options.output ?? process.stdout;
  const render: (line: Line) => string = options.format === "json" ? JSON.stringify : plainText;
  const buffer = createLineBuffer(output, options.timers ?? systemTimers);
  const winston = createWinston({
    level: threshold,
    format: format((info) => ({ ...info, [MESSAGE]: render(info[LINE] as Line) }))(),
    transports: [new transports.Stream({ stream: buffer.stream, eol: "\n" })],
  });
  process.on("exit", buffer.flush);
  let closed = false;
  // A reader that went away (EPIPE) must not take the operator down with an unhandled "error".
  const ignore = (): void => {};
  output.on("error", ignore);

  function toLine(level: LogLevel, msg: string, fields: LogFields): Line {
    const safe = redact.value(fields, { stack: threshold === "debug" });
    const line: Line = {
      time: new Date(clock.now()).toISOString(),
      level,
      replica,
      event: redact.text(fields.event ?? "Log"),
      msg: redact.text(msg),
    };
    const entries = Object.entries(typeof safe === "object" && safe !== null ? safe : { safe });
    for (const [name, value] of entries) {
      if (name === "event" || value === undefined) continue;
      line[name in line ? `${name}_` : name] = value;
    }
    return line;
  }

  function at(level: LogLevel, fixed: LogFields): (msg: string, fields?: LogFields) => void {
    if (RANK[level] > RANK[threshold]) return () => {};
    return (msg, fields) => {
      if (closed) return;
      const line = toLine(level, msg, { ...fixed, ...fields });
      winston.log({ level, message: msg, [LINE]: line });
      // What goes wrong is said at once: it may be the last thing that this process does.
      if (RANK[level] <= RANK.warn) buffer.flush();
    };
  }

  function withFields(fixed: LogFields): Logger {
    return {
      error: at("error", fixed),
      warn: at("warn", fixed),
      info: at("info", fixed),
      debug: at("debug", fixed),
      child: (fields) => withFields({ ...fixed, ...fields }),
    };
  }

  async function close(): Promise<void> {
    if (closed) return;
    closed = true;
    const finished = new Promise<void>((resolve) => winston.once("finish", () => resolve()));
    winston.end();
    // A reader that stands still must not keep the process from ending.
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    await Promise.race([finished, late]);
    clearTimeout(timer);
    process.off("exit", buffer.flush);
    buffer.flush();
  }

  return { ...withFields({}), close, [Symbol.asyncDispose]: close };
}
