// The transport of a reply's bytes: whole with Content-Length, or streamed; plain, or compressed with gzip.

import { constants, createGzip, type Gzip, gzip, type ZlibOptions } from 'node:zlib';
import { tenths } from '../../shared/observe/time-text.ts';
import { type ReplyHead, withHeaders } from '../encode/head.ts';
import type { Transport } from '../encode/writer.ts';
import { resetConnection } from './failure-reply.ts';
import type { OutgoingReply } from './reply.ts';

/** Up to this size, head and body leave as one string in one write. Longer bodies are not copied. */
const oneWriteBytes = 16 * 1024;

/** How long a request has waited for a connection, and how long MySQL has worked on it, up to now. */
export type ReplyTimes = { readonly waitedMs: number; readonly workedMs: number };

/** The value of Server-Timing as of now (https://www.w3.org/TR/server-timing/). */
export function serverTiming({ waitedMs, workedMs }: ReplyTimes): string {
  return `queue;dur=${tenths(waitedMs)}, db;dur=${tenths(workedMs)}`;
}

/** The sender of a reply. */
export interface ReplyEvents {
  /** The reader does not keep up. It does again when the reply emits `drain`. */
  readerIsSlow(): void;
}

/** Sends one reply. */
export class ReplyTransport implements Transport {
  readonly #response: OutgoingReply;
  readonly #requestId: string;
  readonly #times: ReplyTimes;
  readonly #events: ReplyEvents;

  /** @param times the head reports them as they are when it leaves */
  constructor(response: OutgoingReply, requestId: string, times: ReplyTimes, events: ReplyEvents) {
    this.#response = response;
    this.#requestId = requestId;
    this.#times = times;
    this.#events = events;
  }

  sendWhole(head: ReplyHead, bytes: Buffer, length: number, sent: () => void): void {
    const isWritten = length > oneWriteBytes || this.#response.req.method === 'HEAD';
    if (isWritten || head.isCacheable === true) {
      const headers = [...this.#headers(head), 'Content-Length', String(length)];
      this.#response.writeHead(head.status, headers);
      this.#response.end(bytes.subarray(0, length), sent);
      return;
    }
    const timing = serverTiming(this.#times);
    const lines = `${head.lines}X-Request-ID: ${this.#requestId}\r\nServer-Timing: ${timing}\r\nContent-Length: ${length}\r\n`;
    this.#response.sendWhole(head.status, lines, bytes.toString('latin1', 0, length));
    sent();
  }

  begin(head: ReplyHead): void {
    this.#response.writeHead(head.status, this.#headers(head));
  }

  sendPart(bytes: Buffer, sent: () => void): void {
    if (!this.#response.write(bytes, sent)) this.#events.readerIsSlow();
  }

  finish(): void {
    this.#response.end();
  }

  #headers({ headers }: ReplyHead): string[] {
    const timing = serverTiming(this.#times);
    return [
      ...mergeVary(headers, this.#response.addedHeader('vary')),
      'X-Request-ID',
      this.#requestId,
      'Server-Timing',
      timing,
    ];
  }
}

/** writeHead replaces a Vary that was set before. If the reply also varies by Origin, it needs both. */
function mergeVary(headers: readonly string[], set: string | undefined): readonly string[] {
  const at = headers.indexOf('Vary') + 1;
  const own = headers[at] ?? '';
  const isThere = set === undefined || at === 0 || own.includes(set);
  return isThere ? headers : headers.with(at, `${set}, ${own}`);
}

/** Up to this size a reply is not compressed: it fits into one network packet, or nearly. */
const smallBytes = 1024;

/** The level that nginx uses: rows become a few percent longer, in a third of the time. */
const options: ZlibOptions = { level: constants.Z_BEST_SPEED };
/** Each part can be decompressed when it arrives: no row waits in the compressor for the next part. */
const streamed: ZlibOptions = { ...options, flush: constants.Z_SYNC_FLUSH };

/** The sender of a compressed reply. */
export interface GzipEvents extends ReplyEvents {
  /** The compressor is full: write no more for now. */
  compressorIsBusy(): void;
  /** The compressor takes more. */
  compressorFlows(): void;
}

/** Sends one reply, compressed unless it is small. zlib works in node's threads. */
export class GzipTransport implements Transport {
  readonly #plain: ReplyTransport;
  readonly #response: OutgoingReply;
  readonly #events: GzipEvents;
  #compressor: Gzip | null = null;

  constructor(plain: ReplyTransport, response: OutgoingReply, events: GzipEvents) {
    this.#plain = plain;
    this.#response = response;
    this.#events = events;
  }

  sendWhole(head: ReplyHead, bytes: Buffer, length: number, sent: () => void): void {
    if (length <= smallBytes) {
      this.#plain.sendWhole(head, bytes, length, sent);
      return;
    }
    gzip(bytes.subarray(0, length), options, (error, compressed) => {
      sent();
      if (this.#response.destroyed) return;
      if (error !== null) resetConnection(this.#response.socket);
      else this.#plain.sendWhole(compressedHead(head), compressed, compressed.length, () => {});
    });
  }

  begin(head: ReplyHead): void {
    this.#plain.begin(compressedHead(head));
    const compressor = createGzip(streamed);
    this.#compressor = compressor;
    const response = this.#response;
    compressor.on('data', (chunk: Buffer) => this.#send(compressor, chunk));
    compressor.on('drain', () => this.#events.compressorFlows());
    compressor.on('end', () => response.end());
    compressor.on('error', () => resetConnection(response.socket));
    response.onceClosed(() => compressor.destroy());
  }

  /** If the reply ends before the bytes are compressed, `sent` is not called: zlib may still be reading them. */
  sendPart(bytes: Buffer, sent: () => void): void {
    const isFree = this.#compressor?.write(bytes, (error) => {
      if (!error) sent();
    });
    if (isFree === false) this.#events.compressorIsBusy();
  }

  finish(): void {
    this.#compressor?.end();
  }

  /** If the reader takes nothing, the compressor pauses. Its unread input then makes it busy. */
  #send(compressor: Gzip, chunk: Buffer): void {
    const response = this.#response;
    if (response.destroyed || response.write(chunk)) return;
    compressor.pause();
    response.onceDrained(() => compressor.resume());
    this.#events.readerIsSlow();
  }
}

/** The head of a compressed body. */
function compressedHead(head: ReplyHead): ReplyHead {
  return withHeaders(head, ['Content-Encoding', 'gzip']);
}
