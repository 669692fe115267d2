// The end of a request's body: by a length, or by chunks (RFC 9112 sections 6 and 7). Pure.
import { type HeaderSection, readHeaderSection } from './header-section.ts';

/** Takes a piece of a body. */
export type TakePiece = (piece: Buffer) => void;

/** The frame of one body. */
export interface BodyFrame {
  readonly isDone: boolean;
  /**
   * Reads what belongs to the body, from `at` on, and gives its pieces to `take`. Returns the index behind it; -1: the frame is
   * malformed.
   */
  read(bytes: Buffer, at: number, take: TakePiece): number;
}

/** The limit on the line of a chunk's size, with its extensions and its carriage return. */
const maxSizeLineBytes = 1024 + 1;
/** The limit on all trailers together, which is that on headers. */
const maxTrailerBytes = 16 * 1024;

const decimal = /^\d+$/;
const lastIsChunked = /(?:^|[ \t,])chunked$/i;
const chunkedTwice = /(?:^|[ \t,])chunked[ \t]*,/i;

/**
 * The frame of a request's body by its head (RFC 9112 section 6.3); null: there is no body. 'malformed': its end is not certain, so that
 * the connection cannot be used any more.
 */
export function frameOf({
  headers,
  repeated,
}: Pick<HeaderSection, 'headers' | 'repeated'>): BodyFrame | null | 'malformed' {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding !== undefined) {
    const isChunked = lastIsChunked.test(coding) && !chunkedTwice.test(coding);
    return isChunked && length === undefined ? new ChunkFrame() : 'malformed';
  }
  if (length === undefined) return null;
  if (!decimal.test(length) || repeated.includes('content-length')) return 'malformed';
  const bytes = Number(length);
  if (!Number.isSafeInteger(bytes)) return 'malformed';
  return bytes === 0 ? null : new LengthFrame(bytes);
}

class LengthFrame implements BodyFrame {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  read(bytes: Buffer, at: number, take: TakePiece): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    take(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    return end;
  }
}

const lineFeed = 0x0a;
const malformed = -1;
const nothing = Buffer.alloc(0);

/**
 * RFC 9112 section 7.1.1, without the white space that it calls bad. A size of 12 digits is more than any body needs, and an exact number.
 */
const sizeLine =
  /^([0-9A-Fa-f]{1,12})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*\r$/;
/** The same for a line whose end has not come. */
const unfinishedSizeLine = /^[0-9A-Fa-f]{1,12}(?:;[\t -~\x80-\xff]*)?\r?$/;

/** Chunks, of which the last one is empty, then trailers up to an empty line. */
class ChunkFrame implements BodyFrame {
  isDone = false;
  /** The part to which the next byte belongs. */
  #part: 'size' | 'bytes' | 'end of bytes' | 'trailers' = 'size';
  /** Bytes of the chunk that have not come. */
  #left = 0;
  /** The beginning of a line, or of the trailers. */
  #unread: Buffer | null = null;

  read(bytes: Buffer, from: number, take: TakePiece): number {
    let at = from;
    while (at < bytes.length && at !== malformed && !this.isDone) {
      if (this.#part === 'bytes') at = this.#readBytes(bytes, at, take);
      else if (this.#part === 'trailers') at = this.#readTrailers(bytes, at);
      else at = this.#readLine(bytes, at);
    }
    return at;
  }

  #readBytes(bytes: Buffer, at: number, take: TakePiece): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#part = 'end of bytes';
    take(bytes.subarray(at, end));
    return end;
  }

  #readLine(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(lineFeed, at);
    const end = lineEnd < 0 ? bytes.length : lineEnd;
    const line = (this.#unread?.toString('latin1') ?? '') + bytes.toString('latin1', at, end);
    if (lineEnd < 0) {
      this.#unread = Buffer.from(line, 'latin1');
      return this.#mayBecomeLine(line) ? end : malformed;
    }
    this.#unread = null;
    return this.#endLine(line) ? end + 1 : malformed;
  }

  #mayBecomeLine(line: string): boolean {
    if (this.#part === 'end of bytes') return line === '\r';
    return line.length <= maxSizeLineBytes && unfinishedSizeLine.test(line);
  }

  /** @param line without its line feed */
  #endLine(line: string): boolean {
    if (this.#part === 'end of bytes') {
      this.#part = 'size';
      return line === '\r';
    }
    const size = line.length > maxSizeLineBytes ? undefined : sizeLine.exec(line)?.[1];
    if (size === undefined) return false;
    this.#left = Number.parseInt(size, 16);
    this.#part = this.#left === 0 ? 'trailers' : 'bytes';
    return true;
  }

  /** Trailers are checked like headers, and nothing reads them. */
  #readTrailers(bytes: Buffer, at: number): number {
    const before = this.#unread ?? nothing;
    const all = Buffer.concat([before, bytes.subarray(at)]);
    const section = readHeaderSection(all, 0, maxTrailerBytes);
    if (section === null) {
      this.#unread = all;
      return bytes.length;
    }
    if (typeof section === 'string') return malformed;
    if (changesFrame(section)) return malformed;
    this.isDone = true;
    return at + section.end - before.length;
  }
}

/** Whether a trailer is one of those that another reader may act on, so that no sender may send it (RFC 9110 section 6.5.1). */
function changesFrame({ headers }: HeaderSection): boolean {
  const { connection, 'content-length': length, 'transfer-encoding': coding } = headers;
  return connection !== undefined || length !== undefined || coding !== undefined;
}
