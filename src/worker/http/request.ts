// A request as the rest of the worker sees it: its head, checked and taken apart, and its body, read within a limit.

import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { type Failure, refusal } from '../failure/failure.ts';

/** All that the worker uses of node's IncomingMessage: its fields, and the events of its body. */
export type IncomingRequest = Pick<
  IncomingMessage,
  | 'method'
  | 'url'
  | 'httpVersion'
  | 'headers'
  | 'rawHeaders'
  | 'complete'
  | 'socket'
  | 'on'
  | 'once'
  | 'off'
  | 'pause'
  | 'resume'
>;

/** Header fields by their names in lower case. */
export type RequestHeaders = IncomingHttpHeaders;

/** The expectation of a client before it sends a body (RFC 9110 section 10.1.1). */
export type ExpectHeader = 'none' | '100-continue' | 'unknown';

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

/** The source of a head. The request line was checked before node's parser had it. */
export type RawHead = Pick<IncomingRequest, 'httpVersion'> & {
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
};

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

const repeated = (name: string) => bad(`The request has more than one ${name} header.`);
const authorization = 'authorization';
/** Node drops further headers of these names. */
const onceOnly: ReadonlyMap<string, HeadResult> = new Map(
  ['host', authorization, 'content-type'].map((name) => [name, repeated(name)]),
);
/** The lengths of these names, without Host. */
const [minLength, maxLength] = ['content-type'.length, authorization.length];

/** A Host header as it was sent, and its parts. `name` is null if it is malformed. */
type Host = { readonly given: string; readonly authority: string; readonly name: string | null };

/**
 * Reads a head. If another worker has forwarded the request, that worker has checked the number of headers and Host, and sends the head
 * again as HTTP/1.1, whatever version its client speaks.
 */
export type HeadReader = (raw: RawHead, isForwarded?: boolean) => HeadResult;

/**
 * Creates a reader of heads that is as strict as RFC 9112 where node's parser is not. It remembers the last host, because nearly all requests
 * name the same one.
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
  return ({ url: target = '', httpVersion, rawHeaders }, isForwarded = false) => {
    if (rawHeaders.length > 2 * maxHeaders && !isForwarded) return tooManyHeaders;
    const found = findOnceOnly(rawHeaders, checksCredentials);
    if (typeof found === 'object' && found !== null) return found;
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

/** The Host header as it was sent; null: there is none. A failure if a header is repeated that may occur once. */
function findOnceOnly(
  rawHeaders: readonly string[],
  checksCredentials: boolean,
): string | null | HeadResult {
  let host: string | null = null;
  let seen = '';
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index] as string;
    if (length !== 4 && (length < minLength || length > maxLength)) continue;
    const name = (rawHeaders[index] as string).toLowerCase();
    const refused = onceOnly.get(name);
    if (refused === undefined || (name === authorization && !checksCredentials)) continue;
    if (name === 'host' ? host !== null : seen.includes(name)) return refused;
    if (name === 'host') host = rawHeaders[index + 1] as string;
    else seen += `${name},`;
  }
  return host;
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

/** Whether there are several Authorization headers, of which node keeps one. */
export function hasSeveralCredentials({
  rawHeaders,
}: Pick<IncomingRequest, 'rawHeaders'>): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === authorization.length && name.toLowerCase() === authorization) count += 1;
  }
  return count > 1;
}

/** Whether the head announces a body. Without one the request is complete with its head. */
export function announcesBody(request: Pick<IncomingRequest, 'headers'>): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length ?? '0') !== '0';
}

/** Joins pieces of bytes. It grows by doubling, so that many small pieces cost no more than twice their bytes. */
export class ByteCollector {
  length = 0;
  #bytes: Buffer = Buffer.alloc(0);

  /** Adds a piece. The first one is not copied: it must not change afterwards. */
  append(piece: Buffer): void {
    const needed = this.length + piece.length;
    if (this.length === 0) {
      this.#bytes = piece;
    } else {
      if (needed > this.#bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.length, 1024));
        this.#bytes.copy(larger, 0, 0, this.length);
        this.#bytes = larger;
      }
      piece.copy(this.#bytes, this.length);
    }
    this.length = needed;
  }

  /** All bytes, valid until the next piece is added. */
  bytes(): Buffer {
    return this.#bytes.length === this.length ? this.#bytes : this.#bytes.subarray(0, this.length);
  }
}

/** Exactly one of them is called, once; none if the client goes away first. */
export type BodyReader = {
  readonly complete: (body: Buffer) => void;
  readonly failed: (failure: Failure) => void;
};

const tooLarge = (maxBytes: number) =>
  refusal('BODY_TOO_LARGE', `The body is longer than ${maxBytes} bytes.`);

const codedBody = refusal('TRANSFER_CODING', 'The only supported transfer coding is chunked.');

const compressedBody = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must not be compressed: content codings are not supported.',
);

/** Reads the whole body. A body that is too long fails as soon as that is known, and 100 (Continue) is sent only before a good one. */
export function readBody(
  request: IncomingRequest,
  reply: { readonly expectation: ExpectHeader; readonly writeContinue: () => void },
  maxBytes: number,
  reader: BodyReader,
): void {
  const failure = checkAnnouncement(request, maxBytes);
  if (failure !== null) {
    reader.failed(failure);
    return;
  }
  const body = new ByteCollector();
  const take = (chunk: Buffer) => {
    body.append(chunk);
    if (body.length <= maxBytes) return;
    request.off('data', take);
    request.off('end', complete);
    request.pause();
    reader.failed(tooLarge(maxBytes));
  };
  const complete = () => reader.complete(body.bytes());
  request.on('data', take);
  request.on('end', complete);
  if (reply.expectation === '100-continue') reply.writeContinue();
}

function checkAnnouncement({ headers }: IncomingRequest, maxBytes: number): Failure | null {
  if (Number(headers['content-length'] ?? 0) > maxBytes) return tooLarge(maxBytes);
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    return compressedBody;
  }
  // Node decodes only chunked: with another coding before it, the body would be taken for something else.
  return (headers['transfer-encoding'] ?? 'chunked').toLowerCase() === 'chunked' ? null : codedBody;
}

/** Creates a generator of request ids: a random prefix for this process, and a counter. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return () => `${prefix}-${(count++).toString(36)}`;
}
