// The head of a request, read in one pass over its bytes and to the letter (RFC 9112 sections 2 to 6). Pure.
import { type Failure, refusal } from '../failure/failure.ts';
import { type BodyFrame, frameOf } from './body-frame.ts';
import {
  type HeaderFault,
  type HeaderSection,
  isTokenOctet,
  readHeaderSection,
} from './header-section.ts';
import { METHODS } from './node-http.ts';
import { checkRequestLine, versionAt, versionBytes } from './request-line.ts';

/** The limits on one head. */
export type HeadLimits = {
  readonly maxUrlBytes: number;
  /** The limit on all headers together, between the request line and the empty line. */
  readonly maxHeadersBytes: number;
};

/** A head that is well-formed. */
export type ParsedHead = {
  readonly ok: true;
  readonly method: string;
  readonly target: string;
  readonly httpVersion: '1.0' | '1.1';
  readonly section: HeaderSection;
  /** Null: there is no body. */
  readonly frame: BodyFrame | null;
};

/** A head that is refused. */
export type RefusedHead = { readonly ok: false; readonly failure: Failure };

/** The limit on all headers of a request together, which is node's default. */
export const maxHeadersBytes = 16 * 1024;

/** The failure for longer headers. */
export const headersTooLarge: Failure = refusal(
  'HEADERS_TOO_LARGE',
  `The headers are longer than ${maxHeadersBytes} bytes.`,
);
/** The failure for a line that ends with LF alone. */
export const bareLineFeed: Failure = refusal('BAD_REQUEST', 'A line does not end with CR LF.');
const notWellFormed = refusal('BAD_REQUEST', 'The request is not well-formed HTTP.');

const failureOf: Readonly<Record<HeaderFault, Failure>> = {
  malformed: notWellFormed,
  'bare line feed': bareLineFeed,
  'too long': headersTooLarge,
};

const [space, lineFeed, carriageReturn, slash] = [0x20, 0x0a, 0x0d, 0x2f];
const firstVisible = 0x21;
const lastVisible = 0x7e;

/**
 * Reads a head from `from` on. Null: it is incomplete, and nothing of what has come is at fault for certain.
 * A request line at fault is read twice: the second time to say why.
 */
export function parseHead(
  bytes: Buffer,
  from: number,
  limits: HeadLimits,
): ParsedHead | RefusedHead | null {
  const methodEnd = skipToken(bytes, from);
  const target = methodEnd + 1;
  const targetEnd = skipVisible(bytes, target);
  const minor = versionAt(bytes, targetEnd + 1);
  const lineEnd = targetEnd + 1 + versionBytes;
  const hasLine =
    bytes[methodEnd] === space &&
    bytes[target] === slash &&
    targetEnd - target <= limits.maxUrlBytes &&
    bytes[targetEnd] === space &&
    minor !== null &&
    bytes[lineEnd] === carriageReturn &&
    bytes[lineEnd + 1] === lineFeed;
  if (!hasLine) return explainLine(bytes, from, limits);
  const method = methodIn(bytes, from, methodEnd);
  if (method === undefined) return explainLine(bytes, from, limits);
  const section = readHeaderSection(bytes, lineEnd + 2, limits.maxHeadersBytes);
  if (section === null) return null;
  if (typeof section === 'string') return refuse(failureOf[section]);
  const frame = frameOf(section);
  if (frame === 'malformed' || !isTokenList(section.headers.connection))
    return refuse(notWellFormed);
  const text = bytes.toString('latin1', target, targetEnd);
  return { ok: true, method, target: text, httpVersion: minor, section, frame };
}

const optionalToken = /^[ \t]*(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*)?$/;

/** Whether the value of Connection is a list of tokens (RFC 9110 section 7.6.1). A proxy may find another list in anything else. */
function isTokenList(connection: string | undefined): boolean {
  if (connection === undefined || optionalToken.test(connection)) return true;
  return connection.split(',').every((one) => optionalToken.test(one));
}

function refuse(failure: Failure): RefusedHead {
  return { ok: false, failure };
}

function explainLine(bytes: Buffer, from: number, { maxUrlBytes }: HeadLimits): RefusedHead | null {
  const end = bytes.indexOf(lineFeed, from);
  if (end < 0) return null;
  if (bytes[end - 1] !== carriageReturn) return refuse(bareLineFeed);
  return refuse(checkRequestLine(bytes, from, end - 1, maxUrlBytes) ?? notWellFormed);
}

function skipToken(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && isTokenOctet(bytes[at] as number)) at += 1;
  return at;
}

function skipVisible(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && isVisible(bytes[at] as number)) at += 1;
  return at;
}

function isVisible(octet: number): boolean {
  return octet >= firstVisible && octet <= lastVisible;
}

/** The methods by their bytes, for a look-up without a new string. */
const methods: readonly (readonly [name: string, bytes: readonly number[]])[] = [
  // Nearly all requests have one of the first two.
  ...new Set(['GET', 'POST', ...METHODS]),
].map((name) => [name, [...Buffer.from(name)]]);

/** Undefined: no method that a registry lists. */
function methodIn(bytes: Buffer, from: number, end: number): string | undefined {
  return methods.find(
    ([, octets]) =>
      octets.length === end - from && octets.every((octet, at) => bytes[from + at] === octet),
  )?.[0];
}
