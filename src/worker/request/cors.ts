// What a browser must be told so that pages of listed origins may call, and nobody else's (Fetch, section 3.2, CORS protocol).
// Pure.
import type { RequestHeaders } from '../http/request.ts';

/** One section's answer to browsers. */
export type Cors = {
  /** Headers of every reply: name, value, name, value. */
  readonly headersFor: (origin: string | undefined) => readonly string[];
  /** Headers of the answer to a preflight of a listed origin; null: it is none. */
  readonly preflight: (
    method: string | undefined,
    headers: RequestHeaders,
  ) => readonly string[] | null;
};

/** Whatever a reply says of itself that a page may want to read; without this it sees a handful of others only. */
const readable =
  'X-Request-ID, Server-Timing, Retry-After, Allow, WWW-Authenticate, Idempotency-Replayed, X-Consistency-Token, X-Consistency';
const methods = 'GET, HEAD, POST, QUERY, DELETE';
/** Beyond what needs no leave. Credentials are not among what is allowed: tokens are sent by the page itself. */
const sendable =
  'Authorization, Content-Type, User-Agent, X-Request-ID, Idempotency-Key, X-Consistency-Token, traceparent, tracestate';
/** Some browsers take two hours at most; an origin that is taken off the list is refused at once all the same. */
const leaveSeconds = '600';

const leave: readonly string[] = [
  'Access-Control-Allow-Methods',
  methods,
  'Access-Control-Allow-Headers',
  sendable,
  'Access-Control-Max-Age',
  leaveSeconds,
];

/** What replies differ by, where any origin is listed: caches must know on every one of them. */
export function varyHeaders(allowOrigins: readonly string[]): readonly string[] {
  return allowOrigins.length === 0 ? [] : ['Vary', 'Origin'];
}

/** Creates it; null where no origin is listed: then replies say nothing of all this. */
export function createCors(allowOrigins: readonly string[]): Cors | null {
  if (allowOrigins.length === 0) return null;
  const vary = varyHeaders(allowOrigins);
  const listed = new Map(
    allowOrigins.map((origin) => [
      origin,
      [...vary, 'Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', readable],
    ]),
  );
  return {
    headersFor: (origin) => (origin === undefined ? vary : (listed.get(origin) ?? vary)),
    preflight: (method, headers) => {
      const asked = headers['access-control-request-method'];
      if (method !== 'OPTIONS' || asked === undefined) return null;
      if (headers.origin === undefined || !listed.has(headers.origin)) return null;
      return headers['access-control-request-private-network'] === 'true'
        ? [...leave, 'Access-Control-Allow-Private-Network', 'true']
        : leave;
    },
  };
}
