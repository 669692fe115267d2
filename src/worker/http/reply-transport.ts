// A reply's bytes on node:http: whole with Content-Length, or streamed.
// Must not know what the bytes say.

import { constants, createGzip, type Gzip, gzip, type ZlibOptions } from 'node:zlib';
import { tenths } from '../../shared/observe/time-text.ts';
import { type ReplyHead, withHeaders } from '../encode/head.ts';
import type { Transport } from '../encode/writer.ts';
import { type OutgoingReply, resetConnection } from './reply.ts';

/** Up to this size head and body leave as one string, in one write; longer bodies are not copied. */
const oneWriteBytes = 16 * 1024;

/** How long a request has waited for a connection, and how long MySQL has worked on it, up to now. */
export type ReplyTimes = { readonly waitedMs: number; readonly workedMs: number };

/** Server-Timing's value as of now (https://www.w3.org/TR/server-timing/). */
export function serverTiming({ waitedMs, workedMs }: ReplyTimes): string {
  return `queue;dur=${tenths(waitedMs)}, db;dur=${tenths(workedMs)}`;
}

/** Whose reply is sent. */
export interface ReplyEvents {
  /** The reader does not keep up; `drain` of the response tells when it does again. */
  readerIsSlow(): void;
}

/** Sends one reply. */
export class ReplyTransport implements Transport {
  readonly #response: OutgoingReply;
  readonly #requestId: string;
  readonly #times: ReplyTimes;
  readonly #events: ReplyEvents;

  /** @param times of what is replied to, told as they are when the head leaves */
  constructor(response: OutgoingReply, requestId: string, times: ReplyTimes, events: ReplyEvents) {
    this.#response = response;
    this.#requestId = requestId;
    this.#times = times;
    this.#events = events;
  }

  sendWhole(head: ReplyHead, bytes: Buffer, length: number, sent: () => void): void {
    if (length > oneWriteBytes) {
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
      ...mergeVary(headers, this.#response.getHeader('vary')),
      'X-Request-ID',
      this.#requestId,
      'Server-Timing',
      timing,
    ];
  }
}

/** What is given to writeHead takes the place of what was set before; a reply that also differs by Origin says both. */
function mergeVary(
  headers: readonly string[],
  set: ReturnType<OutgoingReply['getHeader']>,
): readonly string[] {
  const at = headers.indexOf('Vary') + 1;
  return set === undefined || at === 0 ? headers : headers.with(at, `${set}, ${headers[at]}`);
}

/** Up to this size a reply is not worth it: it fits into one packet of the network, or nearly. */
const smallBytes = 1024;

/** As nginx has it: the faster levels leave rows a few percent longer at a third of the time. */
const options: ZlibOptions = { level: constants.Z_BEST_SPEED };
/** Whatever was handed over can be read by whoever gets it: no row waits in the compressor for the next part. */
const streamed: ZlibOptions = { ...options, flush: constants.Z_SYNC_FLUSH };

/** Whose reply is compressed. */
export interface GzipEvents extends ReplyEvents {
  /** The compressor has as much as it should: no more for now. */
  compressorIsBusy(): void;
  /** It takes more. */
  compressorFlows(): void;
}

/** Sends one reply, compressed where it is worth it. zlib works in node's threads; all ends with the response. */
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
    response.once('close', () => compressor.destroy());
  }

  /** Bytes that were not compressed because the reply is over are left to the garbage collector: zlib may be reading them. */
  sendPart(bytes: Buffer, sent: () => void): void {
    const isFree = this.#compressor?.write(bytes, (error) => {
      if (!error) sent();
    });
    if (isFree === false) this.#events.compressorIsBusy();
  }

  finish(): void {
    this.#compressor?.end();
  }

  /** While the reader takes nothing the compressor makes nothing: what it has not read makes it busy. */
  #send(compressor: Gzip, chunk: Buffer): void {
    const response = this.#response;
    if (response.destroyed || response.write(chunk)) return;
    compressor.pause();
    response.once('drain', () => compressor.resume());
    this.#events.readerIsSlow();
  }
}

/** The same head, of a body that is compressed. */
function compressedHead(head: ReplyHead): ReplyHead {
  return withHeaders(head, ['Content-Encoding', 'gzip']);
}
