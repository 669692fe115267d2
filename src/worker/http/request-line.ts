// Explains the fault of a request line, whole or as far as it has come. Pure.

import { type Failure, refusal } from '../failure/failure.ts';

const space = 0x20;
const slash = 0x2f;
/** The common start of both versions. */
const versionStart: readonly number[] = [...Buffer.from('HTTP/1.')];
/** The length of a version. */
export const versionBytes: number = versionStart.length + 1;
const [zero, one] = [0x30, 0x31];
/** The longest method that IANA lists is UPDATEREDIRECTREF. */
const maxMethodBytes = 32;

const bad = (message: string) => refusal('BAD_REQUEST', message);
const notOneSpace = bad('The parts of the request line must be separated by one space.');
const otherVersion = bad('Only HTTP/1.0 and HTTP/1.1 are supported.');
const noPath = bad('The request target is not a path.');
const noMethod = bad('The request does not begin with a method.');
const noProxy = refusal('METHOD_NOT_ALLOWED', 'The gateway is not a proxy.');

/** The failure for a longer request target. */
export function urlTooLong(maxUrlBytes: number): Failure {
  const message = `The URL is longer than ${maxUrlBytes} bytes. Send long SQL in a POST body.`;
  return refusal('URL_TOO_LONG', message);
}

/**
 * Checks `method SP origin-form SP version` (RFC 9112 section 3) in `bytes` from `start` to `end`, without the line end. Null: its parts are
 * in their places; which octets they have is not looked at.
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
  if (versionAt(bytes, version) === null) return otherVersion;
  if (bytes.indexOf(space, target) !== version - 1) return notOneSpace;
  if (bytes[target] !== slash) return isConnect(bytes, start, target) ? noProxy : noPath;
  return version - 1 - target > maxUrlBytes ? urlTooLong(maxUrlBytes) : null;
}

/** Checks a request line as far as it has come. */
export function checkUnfinishedLine(
  bytes: Buffer,
  start: number,
  maxUrlBytes: number,
): Failure | null {
  if (!isLetter(bytes[start])) return noMethod;
  const target = bytes.indexOf(space, start) + 1;
  if (target === 0) return bytes.length - start > maxMethodBytes ? noMethod : null;
  // The version, its space and the line end may follow the target.
  return bytes.length - target > maxUrlBytes + versionBytes + 3 ? urlTooLong(maxUrlBytes) : null;
}

const headMethod = Buffer.from('HEAD');

/** Whether a request line has the method HEAD, be the rest of it well-formed or not. */
export function asksHead(bytes: Buffer, start: number): boolean {
  const end = start + headMethod.length;
  if (bytes[start] !== headMethod[0] || end > bytes.length) return false;
  return bytes.compare(headMethod, 0, headMethod.length, start, end) === 0 && !isLetter(bytes[end]);
}

/** The version of HTTP at an index; null: it is none of those that are supported, or has not come. */
export function versionAt(bytes: Buffer, at: number): '1.0' | '1.1' | null {
  if (at + versionBytes > bytes.length) return null;
  for (let index = 0; index < versionStart.length; index += 1) {
    if (bytes[at + index] !== versionStart[index]) return null;
  }
  const minor = bytes[at + versionStart.length];
  if (minor === one) return '1.1';
  return minor === zero ? '1.0' : null;
}

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a;
}

function isConnect(bytes: Buffer, start: number, target: number): boolean {
  return bytes.toString('latin1', start, target) === 'CONNECT ';
}
