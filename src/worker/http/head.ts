// The head of a request taken apart: its path, its query and its host, each checked, and headers that may occur once.
import { isIPv6 } from 'node:net';
import { type Failure, refusal } from '../failure/failure.ts';
import type { FieldName } from './header-section.ts';
import type { IncomingRequest } from './request.ts';

/** The parts of a head that decide how a request is handled. */
export type RequestHead = {
  readonly path: string;
  /** Everything after the first `?`; null: there is no `?`. */
  readonly query: string | null;
  /** The host that the client names, in lower case and without its port; null: it names none. */
  readonly host: string | null;
  /** The same with its port, as an Origin names it. */
  readonly authority: string | null;
};

/** The head, or why the request is rejected. */
export type HeadResult =
  | { readonly ok: true; readonly head: RequestHead }
  | { readonly ok: false; readonly failure: Failure };

/** The source of a head: a request, whose lines are well-formed. */
export type RawHead = Pick<
  IncomingRequest,
  'url' | 'httpVersion' | 'headers' | 'headerCount' | 'repeated'
>;

const maxHeaders = 100;

const bad = (message: string): HeadResult => ({
  ok: false,
  failure: refusal('BAD_REQUEST', message),
});
const tooManyHeaders: HeadResult = {
  ok: false,
  failure: refusal('HEADERS_TOO_LARGE', `The request has more than ${maxHeaders} headers.`),
};
const badHost = bad('The Host header is malformed.');
const noHost = bad('The request has no Host header.');

const severalOf = (name: string) => bad(`The request has more than one ${name} header.`);
/** The fields that may occur once, of those whose first line alone would count. */
const onceOnly: ReadonlyMap<FieldName, HeadResult> = new Map(
  (['host', 'authorization', 'content-type'] as const).map((name) => [name, severalOf(name)]),
);

/** A Host header as it was sent, and its parts. `name` is null if it is malformed. */
type Host = { readonly given: string; readonly authority: string; readonly name: string | null };

/**
 * Reads a head. If another worker has forwarded the request, that worker has checked the number of headers and Host, and sends the head
 * again as HTTP/1.1, whatever version its client speaks.
 */
export type HeadReader = (raw: RawHead, isForwarded?: boolean) => HeadResult;

/**
 * Creates a reader of heads. It remembers the last host, because nearly all requests name the same one.
 * @param checksCredentials whether several Authorization headers are malformed; otherwise the caller must look for them
 */
export function createHeadReader({
  hostMayBeMissing,
  checksCredentials = true,
}: {
  readonly hostMayBeMissing: boolean;
  readonly checksCredentials?: boolean;
}): HeadReader {
  let last: Host | null = null;
  const hostOf = (given: string): Host => {
    if (last?.given === given) return last;
    const authority = given.toLowerCase();
    last = { given, authority, name: nameOf(authority) };
    return last;
  };
  return ({ url: target, httpVersion, headers, headerCount, repeated }, isForwarded = false) => {
    if (headerCount > maxHeaders && !isForwarded) return tooManyHeaders;
    const refused = repeated.length === 0 ? undefined : findRepeated(repeated, checksCredentials);
    if (refused !== undefined) return refused;
    const { host: found = null } = headers;
    const given = found === '' && hostMayBeMissing ? null : found;
    const isNeeded = httpVersion !== '1.0' && !hostMayBeMissing && !isForwarded;
    if (given === null && isNeeded) return noHost;
    const host = given === null ? null : hostOf(given);
    if (host?.name === null) return badHost;
    const mark = target.indexOf('?');
    return {
      ok: true,
      head: {
        path: mark < 0 ? target : target.slice(0, mark),
        query: mark < 0 ? null : target.slice(mark + 1),
        host: host?.name ?? null,
        authority: host?.authority ?? null,
      },
    };
  };
}

function findRepeated(
  repeated: readonly FieldName[],
  checksCredentials: boolean,
): HeadResult | undefined {
  const name = repeated.find(
    (one) => onceOnly.has(one) && (checksCredentials || one !== 'authorization'),
  );
  return name === undefined ? undefined : onceOnly.get(name);
}

const hostSyntax = /^(?:([a-z0-9._~-]+)|(\[([0-9a-f:.]+)\]))(?::(\d{1,5}))?$/;

/** The host without its port; null: it is malformed (RFC 9110 section 7.2, without characters that host names never have). */
function nameOf(authority: string): string | null {
  const match = hostSyntax.exec(authority);
  if (match === null || Number(match[4] ?? 0) > 65_535) return null;
  const [, name, bracketed, address] = match;
  if (bracketed === undefined) return name as string;
  return isIPv6(address as string) ? bracketed : null;
}

/** Whether there are several Authorization headers, of which the first counts. */
export function hasSeveralCredentials({ repeated }: Pick<IncomingRequest, 'repeated'>): boolean {
  return repeated.includes('authorization');
}
