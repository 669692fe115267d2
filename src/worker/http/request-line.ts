// The first line of a request, read to the letter: node's parser takes several spaces, and other protocols' names.
// Pure. Must not know headers, nor what a path means.
import { type Failure, refusal } from '../failure/failure.ts';

const space = 0x20;
const slash = 0x2f;
const versionBytes = 8;
/** What both versions begin with; the last digit is 0 or 1. */
const versionStart = [...Buffer.from('HTTP/1.')];
/** IANA's longest is UPDATEREDIRECTREF. */
const mostMethodBytes = 32;

const bad = (message: string) => refusal('BAD_REQUEST', message);
const notOneSpace = bad('The parts of the request line must be separated by one space.');
const otherVersion = bad('Only HTTP/1.0 and HTTP/1.1 are spoken here.');
const noPath = bad('The request target is not a path.');
const noMethod = bad('The request does not begin with a method.');
const noProxy = refusal('METHOD_NOT_ALLOWED', 'This is no proxy.');

/** What a target that is longer than that is answered with. */
export function urlTooLong(maxUrlBytes: number): Failure {
  const message = `The URL is longer than ${maxUrlBytes} bytes. Send long SQL in a POST body.`;
  return refusal('URL_TOO_LONG', message);
}

/**
 * Checks `method SP origin-form SP version` (RFC 9112 section 3), which stands in `bytes` from `start` to `end`
 * without its line end. Which octets a method and a target may have is left to node's parser.
 */
export function checkRequestLine(
  bytes: Buffer,
  start: number,
  end: number,
  maxUrlBytes: number,
): Failure | null {
  if (!isLetter(bytes[start])) return noMethod;
  const target = bytes.indexOf(space, start) + 1;
  const version = end - versionBytes;
  if (target <= start + 1 || target > end) return noMethod;
  if (version <= target || bytes[version - 1] !== space) return otherVersion;
  if (!isVersion(bytes, version)) return otherVersion;
  if (bytes.indexOf(space, target) !== version - 1) return notOneSpace;
  if (bytes[target] !== slash) return isConnect(bytes, start, target) ? noProxy : noPath;
  return version - 1 - target > maxUrlBytes ? urlTooLong(maxUrlBytes) : null;
}

/** The same of a line whose end has not come yet: what can be told of it by now. */
export function checkUnfinishedLine(
  bytes: Buffer,
  start: number,
  maxUrlBytes: number,
): Failure | null {
  if (!isLetter(bytes[start])) return noMethod;
  const target = bytes.indexOf(space, start) + 1;
  if (target === 0) return bytes.length - start > mostMethodBytes ? noMethod : null;
  // The version and a line end, both spaces included.
  return bytes.length - target > maxUrlBytes + versionBytes + 3 ? urlTooLong(maxUrlBytes) : null;
}

function isVersion(bytes: Buffer, at: number): boolean {
  for (let index = 0; index < versionStart.length; index += 1) {
    if (bytes[at + index] !== versionStart[index]) return false;
  }
  const minor = bytes[at + versionStart.length];
  return minor === 0x31 || minor === 0x30;
}

/** Node's parser passes over any line ends before a method. */
function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a;
}

function isConnect(bytes: Buffer, start: number, target: number): boolean {
  return bytes.toString('latin1', start, target) === 'CONNECT ';
}
