// Headers that let pages of listed origins call the gateway, and no others (Fetch, section 3.2, CORS protocol). Pure.
import type { RequestHeaders } from '../http/request.ts';

/** One section's answer to browsers. */
export type Cors = {
  /** Headers of every reply: name, value, name, value. */
  readonly headersFor: (origin: string | undefined) => readonly string[];
  /** Headers of the answer to a preflight from a listed origin; null: the request is another one. */
  readonly preflight: (
    method: string | undefined,
    headers: RequestHeaders,
  ) => readonly string[] | null;
};

/** The headers of replies that a page may read, beside the few that every page may. */
const readable =
  'X-Request-ID, Server-Timing, Retry-After, Allow, WWW-Authenticate, Idempotency-Replayed, X-Consistency-Token, X-Consistency';
const methods = 'GET, HEAD, POST, QUERY, DELETE';
/** The headers that a page may send, beside those that every page may. Credentials are not allowed: the page itself sends tokens. */
const sendable =
  'Authorization, Content-Type, User-Agent, X-Request-ID, Idempotency-Key, X-Consistency-Token, traceparent, tracestate';
/** How long browsers remember the answer; some take at most two hours. An origin that is no longer listed is refused at once all the same. */
const maxAgeSeconds = '600';

const preflightHeaders: readonly string[] = [
  'Access-Control-Allow-Methods',
  methods,
  'Access-Control-Allow-Headers',
  sendable,
  'Access-Control-Max-Age',
  maxAgeSeconds,
];

/** If any origin is listed, replies depend on it: caches must learn that from each of them. */
export function varyHeaders(allowOrigins: readonly string[]): readonly string[] {
  return allowOrigins.length === 0 ? [] : ['Vary', 'Origin'];
}

/** Null: no origin is listed, and replies have none of these headers. */
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
        ? [...preflightHeaders, 'Access-Control-Allow-Private-Network', 'true']
        : preflightHeaders;
    },
  };
}
