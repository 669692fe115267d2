// The trace that a request is part of, from its traceparent (W3C Trace Context). Pure.

/** A request's place in a trace. */
export type Trace = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The value that is passed on: 55 characters, of version 00. */
  readonly traceparent: string;
};

const syntax =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
const wholeLength = 55;

/**
 * Parses a traceparent (section 3.2); null: it is malformed, and the request is part of no trace. A later version is passed on as version 00,
 * with the one flag that 00 has (3.2.4).
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

/** The log field of a trace, under OpenTelemetry's name for logs; no field without a trace. */
export function traceField(traceId: string | null): { readonly trace_id?: string } {
  return traceId === null ? {} : { trace_id: traceId };
}
