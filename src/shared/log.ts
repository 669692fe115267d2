// The log: one line an event, levels, control characters escaped, reopened on request.
// Must not know what is logged.

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

/** Fields of a log line, written as key=value after the message. Never SQL literals, never secrets. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/** A log that never throws and never blocks a request. */
export type Log = {
  readonly error: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly debug: (message: string, fields?: LogFields) => void;
  /** Opens the file anew, for logrotate; no line is lost. */
  readonly reopen: () => void;
};
