// The trace that a request is part of, as its traceparent says (W3C Trace Context).
// Pure. Must not know what is done with it.

/** A request's place in a trace. */
export type Trace = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The whole as whoever comes next is told it: 55 characters, of version 00. */
  readonly traceparent: string;
};

const syntax =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
const wholeLength = 55;

/**
 * Reads a traceparent (section 3.2); null where it is none: then the request is part of no trace, and runs all the same. What
 * is of a later version is told on as version 00, with the one flag that 00 knows (3.2.4).
 */
export function parseTraceparent(text: string | string[] | undefined): Trace | null {
  if (typeof text !== 'string') return null;
  const match = syntax.exec(text);
  if (match === null) return null;
  const [, version, traceId = '', parentId, flags = ''] = match;
  if (version === '00') {
    return text.length === wholeLength ? { traceId, traceparent: text } : null;
  }
  const sampled = Number.parseInt(flags, 16) & 1;
  return { traceId, traceparent: `00-${traceId}-${parentId}-0${sampled}` };
}

/** What a line of the log says of it: only what is part of a trace says so. OpenTelemetry's name for it in logs. */
export function traceField(traceId: string | null): { readonly trace_id?: string } {
  return traceId === null ? {} : { trace_id: traceId };
}
