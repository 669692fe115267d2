// Where a request's body ends, told from its bytes: by its length, or by its chunks (RFC 9112 sections 6 and 7).
// Pure. Must not know what a body says; what its octets may be is left to node's parser.
import type { IncomingMessage } from 'node:http';

/** Follows one body. */
export interface BodyFrame {
  readonly isDone: boolean;
  /** The index behind the last byte, from `at` on, that belongs to the body; -1: these are no chunks. */
  take(bytes: Buffer, at: number): number;
}

/** How the body of a request is to be followed; null: it has none. */
export function frameOf({ headers }: IncomingMessage): BodyFrame | null {
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
/** Digits of a chunk's size: more than any limit needs, few enough to be exact. */
const mostSizeDigits = 12;
/** The line of a chunk's size, extensions included. */
const mostSizeLineBytes = 1024;
/** All trailers, as of a head's fields. */
const mostTrailerBytes = 16 * 1024;

/** Chunks, the last of which is empty, then trailers up to an empty line. */
class ChunkFrame implements BodyFrame {
  isDone = false;
  /** What the next byte belongs to. */
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
    // A line ends by both, and neither stands elsewhere.
    if ((byte === lineFeed) !== (this.#previous === carriageReturn)) return false;
    if (byte === lineFeed) return this.#part !== 'size' || this.#digits > 0;
    if (byte === carriageReturn) return true;
    if (this.#part === 'trailers') return ++this.#trailerBytes <= mostTrailerBytes;
    if (this.#part === 'end of bytes') return false;
    if (this.#part === 'size' && byte !== semicolon) return this.#takeDigit(byte);
    this.#part = 'extension';
    return this.#digits > 0 && this.#lineBytes <= mostSizeLineBytes;
  }

  #takeDigit(byte: number): boolean {
    const digit = Number.parseInt(String.fromCharCode(byte), 16);
    if (Number.isNaN(digit)) return false;
    this.#size = this.#size * 16 + digit;
    this.#digits += 1;
    return this.#digits <= mostSizeDigits;
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
