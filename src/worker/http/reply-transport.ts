// A reply's bytes on node:http: whole with Content-Length, or streamed.
// Must not know what the bytes say.
import type { Transport } from '../reply/writer.ts';
import { jsonHeaders } from './failure.ts';
import { headerLines, type OutgoingReply } from './outgoing-reply.ts';

/** Up to this size head and body leave as one string, in one write; longer bodies are not copied. */
const oneWriteBytes = 16 * 1024;

/** The same headers as lines. */
const jsonLines = headerLines(jsonHeaders);

/** Whose reply is sent. */
export interface ReplyEvents {
  readonly requestId: string;
  /** Server-Timing's value, as of when the head is written. */
  serverTiming(): string;
  /** The reader does not keep up; `drain` of the response tells when it does again. */
  readerIsSlow(): void;
}

/** Sends one reply of status 200. */
export class ReplyTransport implements Transport {
  readonly #response: OutgoingReply;
  readonly #events: ReplyEvents;

  constructor(response: OutgoingReply, events: ReplyEvents) {
    this.#response = response;
    this.#events = events;
  }

  sendWhole(bytes: Buffer, length: number, sent: () => void): void {
    if (length > oneWriteBytes) {
      this.#response.writeHead(200, [...this.#headers(), 'Content-Length', String(length)]);
      this.#response.end(bytes.subarray(0, length), sent);
      return;
    }
    const { requestId } = this.#events;
    const timing = this.#events.serverTiming();
    const head = `${jsonLines}X-Request-ID: ${requestId}\r\nServer-Timing: ${timing}\r\nContent-Length: ${length}\r\n`;
    this.#response.sendWhole(200, head, bytes.toString('latin1', 0, length));
    sent();
  }

  begin(): void {
    this.#response.writeHead(200, this.#headers());
  }

  sendPart(bytes: Buffer, sent: () => void): void {
    if (!this.#response.write(bytes, sent)) this.#events.readerIsSlow();
  }

  finish(): void {
    this.#response.end();
  }

  #headers(): string[] {
    const { requestId } = this.#events;
    const timing = this.#events.serverTiming();
    return [...jsonHeaders, 'X-Request-ID', requestId, 'Server-Timing', timing];
  }
}
