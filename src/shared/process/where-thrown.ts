// Where an exception came from, for the log: its kind and its frames.
// Must not tell its message, which may quote what a client or a server sent.

/** One line: name, code, and the innermost frames. */
export function whereThrown(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = 'code' in error ? ` ${String(error.code)}` : '';
  const frames = [...(error.stack ?? '').matchAll(/^ {4}at (.*)$/gm)].map(([, frame]) => frame);
  return [`${error.name}${code}`, ...frames].join(' < ');
}
