// A reply's bytes on node:http: whole with Content-Length, or streamed.
// Must not know what the bytes say.
import type { ServerResponse } from 'node:http';
import type { Transport } from '../reply/writer.ts';
import { jsonHeaders } from './failure.ts';

/** Up to this size head and body leave as one string, in one write; longer bodies are not copied. */
const oneWriteBytes = 16 * 1024;

/** Whose reply is sent. */
export interface ReplyOwner {
  readonly requestId: string;
  /** Server-Timing's value, as of when the head is written. */
  serverTiming(): string;
  /** The reader does not keep up; `drain` of the response tells when it does again. */
  readerIsSlow(): void;
}

/** Sends one reply of status 200. */
export class ReplyTransport implements Transport {
  readonly #response: ServerResponse;
  readonly #owner: ReplyOwner;

  constructor(response: ServerResponse, owner: ReplyOwner) {
    this.#response = response;
    this.#owner = owner;
  }

  sendWhole(bytes: Buffer, sent: () => void): void {
    const response = this.#response;
    response.writeHead(200, [...this.#headers(), 'Content-Length', String(bytes.length)]);
    if (bytes.length > oneWriteBytes) {
      response.end(bytes, sent);
      return;
    }
    // write, uncork, end: one write(2); end alone would add an empty chunk and make it a writev.
    response.write(bytes.toString('latin1'), 'latin1');
    response.socket?.uncork();
    response.end();
    sent();
  }

  begin(): void {
    this.#response.writeHead(200, this.#headers());
  }

  sendPart(bytes: Buffer, sent: () => void): void {
    if (!this.#response.write(bytes, sent)) this.#owner.readerIsSlow();
  }

  finish(): void {
    this.#response.end();
  }

  #headers(): string[] {
    const { requestId } = this.#owner;
    const timing = this.#owner.serverTiming();
    return [...jsonHeaders, 'X-Request-ID', requestId, 'Server-Timing', timing];
  }
}
