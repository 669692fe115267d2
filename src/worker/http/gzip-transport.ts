// A reply's bytes compressed on their way: what is whole at once, what streams part by part, each flushed to its reader.
// Must not know what the bytes say.
import { constants, createGzip, type Gzip, gzip, type ZlibOptions } from 'node:zlib';
import { type ReplyHead, withHeaders } from '../encode/head.ts';
import type { Transport } from '../encode/writer.ts';
import type { OutgoingReply } from './outgoing-reply.ts';
import type { ReplyEvents, ReplyTransport } from './reply-transport.ts';
import { resetConnection } from './reset.ts';

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
