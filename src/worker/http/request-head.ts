// What a request's head says, checked before anything is done: path, query, host, syntax.
// Pure. Must not know routes or SQL.
import type { Rules } from './compat.ts';
import { type Failure, refusal } from './failure.ts';

/** The parts of a head that decide. `query` is everything after the first `?`; null without one. */
export type RequestHead = {
  readonly path: string;
  readonly query: string | null;
  /** The name that the client used for us, in lower case and without port; null if it gave none. */
  readonly host: string | null;
  /** The same with its port, as an Origin would name it. */
  readonly authority: string | null;
};

/** The head, or why it is none. */
export type HeadResult =
  | { readonly ok: true; readonly head: RequestHead }
  | { readonly ok: false; readonly failure: Failure };

/** The fields of node's IncomingMessage that are looked at. */
export type RawHead = {
  readonly url?: string | undefined;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
};

const badSyntax = (message: string): HeadResult => ({
  ok: false,
  failure: refusal(400, 'BAD_REQUEST', message),
});

/** Reads a head as RFC 9112 asks; what node's parser lets pass and the RFC does not is refused here. */
export function readHead(
  raw: RawHead,
  maxUrlBytes: number,
  { hostMayBeMissing }: Pick<Rules, 'hostMayBeMissing'>,
): HeadResult {
  const target = raw.url ?? '';
  if (raw.httpVersion !== '1.1' && raw.httpVersion !== '1.0') {
    return badSyntax('Only HTTP/1.0 and HTTP/1.1 are spoken here.');
  }
  if (target.length > maxUrlBytes) {
    const message = `The URL is longer than ${maxUrlBytes} bytes. Send long SQL in a POST body.`;
    return { ok: false, failure: refusal(414, 'URL_TOO_LONG', message) };
  }
  const hosts = headerValues(raw.rawHeaders, 'host');
  if (hosts.length > 1) return badSyntax('The request has more than one Host header.');
  if (hosts.length === 0 && raw.httpVersion === '1.1' && !hostMayBeMissing) {
    return badSyntax('The request has no Host header.');
  }
  const { authority, origin } = splitTarget(target);
  if (!origin.startsWith('/')) return badSyntax('The request target is not a path.');
  const mark = origin.indexOf('?');
  const named = (authority ?? hosts[0])?.toLowerCase() ?? null;
  return {
    ok: true,
    head: {
      path: mark < 0 ? origin : origin.slice(0, mark),
      query: mark < 0 ? null : origin.slice(mark + 1),
      host: named === null ? null : withoutPort(named),
      authority: named,
    },
  };
}

function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index] as string;
    if (candidate.length === name.length && candidate.toLowerCase() === name) {
      values.push(rawHeaders[index + 1] as string);
    }
  }
  return values;
}

/** The absolute form (RFC 9112 section 3.2.2) names its authority; it overrules Host. */
function splitTarget(target: string): { authority: string | undefined; origin: string } {
  if (target.startsWith('/')) return { authority: undefined, origin: target };
  const scheme = target.slice(0, 8).toLowerCase();
  const start = scheme.startsWith('http://') ? 7 : scheme === 'https://' ? 8 : 0;
  if (start === 0) return { authority: undefined, origin: target };
  const rest = target.slice(start);
  const end = rest.search(/[/?]/);
  if (end < 0) return { authority: rest, origin: '/' };
  const origin = rest.slice(end);
  return { authority: rest.slice(0, end), origin: origin.startsWith('?') ? `/${origin}` : origin };
}

function withoutPort(host: string): string {
  if (host.startsWith('[')) return host.slice(0, host.indexOf(']') + 1);
  const colon = host.lastIndexOf(':');
  return colon < 0 ? host : host.slice(0, colon);
}
