// The log: one line for each event, with levels and escaped control characters. It is reopened on request.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { LineWriter } from './line-writer.ts';

/** The urgency of a line, the most urgent first. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

/** Fields of a log line, written as key=value after the message. Never SQL literals, never secrets. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/** A log that never throws and never blocks a request. */
export type Log = {
  readonly error: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  /** Null: such lines are not written, and `log.debug?.(…)` does not evaluate its arguments. */
  readonly debug: ((message: string, fields?: LogFields) => void) | null;
  /** Opens the file again, for logrotate. No line is lost. */
  readonly reopen: () => void;
};

/** A log with the methods that only its owner, a main file, needs. */
export type OwnedLog = Log & {
  /** Writes what is buffered before it returns, for the moment of exit. */
  readonly flush: () => void;
  /** The number of lines that could not be written so far. */
  readonly lost: () => number;
};

/** The destination of a log: a file, created with its directory, or this process's stderr. */
export type LogTarget = { readonly path: string } | 'stderr';

const urgency: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2, debug: 3 };

/** When lines are written: later in batches, or each before its call returns. */
export type LogPace = 'batched' | 'at once';

/**
 * Opens a log. `origin` names the process in each line. A process that may exit at any moment writes `at once`, because a batch
 * that is being written at the exit is lost. Throws if the file cannot be created or written.
 */
export function openLog(
  target: LogTarget,
  level: LogLevel,
  origin: string,
  pace: LogPace,
): OwnedLog {
  if (target !== 'stderr') mkdirSync(dirname(target.path), { recursive: true });
  const writer = new LineWriter(target === 'stderr' ? 2 : target.path, (lines) =>
    log.warn('lines of this log were lost', { lines }),
  );
  const writeAt = (own: LogLevel) => {
    if (urgency[own] > urgency[level]) return () => {};
    return (message: string, fields?: LogFields) => {
      writer.write(formatLine(own, origin, message, fields));
      if (pace === 'at once') writer.flush();
    };
  };
  const log = { error: writeAt('error'), warn: writeAt('warn'), info: writeAt('info') };
  return {
    ...log,
    debug: level === 'debug' ? writeAt('debug') : null,
    reopen: () => {
      if (target !== 'stderr') remakeDirectory(target.path);
      const reason = writer.reopen();
      if (reason !== null) log.warn('cannot reopen the log; the old file stays in use', { reason });
    },
    flush: () => writer.flush(),
    lost: () => writer.lost(),
  };
}

/** Makes the directory of a log again, if it was removed with the log. If that fails, opening the log reports why. */
function remakeDirectory(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch {
    // Opening the log fails too.
  }
}

function formatLine(level: LogLevel, origin: string, message: string, fields?: LogFields): string {
  let line = `${new Date().toISOString()} ${level} [${origin}] ${escapeControl(message)}`;
  for (const key in fields) line += ` ${key}=${formatField(fields[key])}`;
  return `${line}\n`;
}

function formatField(value: string | number | boolean | undefined): string {
  if (typeof value !== 'string') return String(value);
  return value !== '' && !/[\s"=]/.test(value)
    ? escapeControl(value)
    : escapeControl(JSON.stringify(value));
}

// Control characters, and those that change the direction of text, so that a line would read as something else.
const control = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** The text with every control character as \uXXXX, so that it can neither forge a line nor control a terminal. */
export function escapeControl(text: string): string {
  return text.replace(control, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The origin of an exception: name, code and innermost frames. Without its message, which may quote a client or a server. */
export function whereThrown(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = 'code' in error ? ` ${String(error.code)}` : '';
  const frames = [...(error.stack ?? '').matchAll(/^ {4}at (.*)$/gm)].map(([, frame]) => frame);
  return [`${error.name}${code}`, ...frames].join(' < ');
}
