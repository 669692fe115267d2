// The syntax of requests where the gateway is stricter than node's parser: the request line, and where a body ends. Pure.

import { type Failure, refusal } from '../failure/failure.ts';
import type { IncomingRequest } from './request.ts';

const space = 0x20;
const slash = 0x2f;
const versionBytes = 8;
/** The common start of both versions; the last digit is 0 or 1. */
const versionStart = [...Buffer.from('HTTP/1.')];
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
 * Checks `method SP origin-form SP version` (RFC 9112 section 3) in `bytes` from `start` to `end`, without the line end. Node's parser would
 * accept several spaces, and names of other protocols. It checks which octets a method and a target have.
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

function isVersion(bytes: Buffer, at: number): boolean {
  for (let index = 0; index < versionStart.length; index += 1) {
    if (bytes[at + index] !== versionStart[index]) return false;
  }
  const minor = bytes[at + versionStart.length];
  return minor === 0x31 || minor === 0x30;
}

/** Node's parser would skip any number of line ends before a method. */
function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a;
}

function isConnect(bytes: Buffer, start: number, target: number): boolean {
  return bytes.toString('latin1', start, target) === 'CONNECT ';
}

/** Finds the end of one body. */
export interface BodyFrame {
  readonly isDone: boolean;
  /** The index behind the last byte that belongs to the body, from `at` on; -1: the chunks are malformed. */
  take(bytes: Buffer, at: number): number;
}

/** The frame of a request's body: its length, or chunks (RFC 9112 sections 6 and 7); null: there is no body. */
export function frameOf({ headers }: Pick<IncomingRequest, 'headers'>): BodyFrame | null {
  if (headers['transfer-encoding'] !== undefined) return new ChunkFrame();
  const length = Number(headers['content-length'] ?? 0);
  return length === 0 ? null : new LengthFrame(length);
}

class LengthFrame implements BodyFrame {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  take(bytes: Buffer, at: number): number {
    const taken = Math.min(this.#left, bytes.length - at);
    this.#left -= taken;
    return at + taken;
  }
}

const [carriageReturn, lineFeed, semicolon] = [0x0d, 0x0a, 0x3b];
/** The limit on the digits of a chunk's size: more than any body needs, and few enough for an exact number. */
const maxSizeDigits = 12;
/** The limit on the line of a chunk's size, with its extensions. */
const maxSizeLineBytes = 1024;
/** The limit on all trailers together, which is that on headers. */
const maxTrailerBytes = 16 * 1024;

/** Chunks, of which the last one is empty, then trailers up to an empty line. */
class ChunkFrame implements BodyFrame {
  isDone = false;
  /** The part to which the next byte belongs. */
  #part: 'size' | 'extension' | 'bytes' | 'end of bytes' | 'trailers' = 'size';
  #size = 0;
  #digits = 0;
  #lineBytes = 0;
  #left = 0;
  #trailerBytes = 0;
  #previous = 0;

  take(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length && !this.isDone) {
      if (this.#part === 'bytes') {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        if (this.#left === 0) this.#begin('end of bytes');
        continue;
      }
      const byte = bytes[at] as number;
      at += 1;
      this.#lineBytes += 1;
      if (!this.#isSound(byte)) return -1;
      this.#previous = byte;
      if (byte === lineFeed) this.#endLine();
    }
    return at;
  }

  #isSound(byte: number): boolean {
    // CR LF ends a line, and neither byte occurs elsewhere.
    if ((byte === lineFeed) !== (this.#previous === carriageReturn)) return false;
    if (byte === lineFeed) return this.#part !== 'size' || this.#digits > 0;
    if (byte === carriageReturn) return true;
    if (this.#part === 'trailers') return ++this.#trailerBytes <= maxTrailerBytes;
    if (this.#part === 'end of bytes') return false;
    if (this.#part === 'size' && byte !== semicolon) return this.#takeDigit(byte);
    this.#part = 'extension';
    return this.#digits > 0 && this.#lineBytes <= maxSizeLineBytes;
  }

  #takeDigit(byte: number): boolean {
    const digit = Number.parseInt(String.fromCharCode(byte), 16);
    if (Number.isNaN(digit)) return false;
    this.#size = this.#size * 16 + digit;
    this.#digits += 1;
    return this.#digits <= maxSizeDigits;
  }

  #endLine(): void {
    if (this.#part === 'end of bytes') {
      this.#begin('size');
    } else if (this.#part === 'trailers') {
      if (this.#lineBytes === 2) this.isDone = true;
      else this.#begin('trailers');
    } else if (this.#size === 0) {
      this.#begin('trailers');
    } else {
      this.#left = this.#size;
      this.#begin('bytes');
    }
  }

  #begin(part: 'size' | 'bytes' | 'end of bytes' | 'trailers'): void {
    this.#part = part;
    this.#previous = 0;
    this.#lineBytes = 0;
    if (part !== 'size') return;
    this.#size = 0;
    this.#digits = 0;
  }
}
