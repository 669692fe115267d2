// A reply's bytes on node:http: whole with Content-Length, or streamed.
// Must not know what the bytes say.

import type { ReplyHead } from '../encode/head.ts';
import type { Transport } from '../encode/writer.ts';
import type { RunTimes } from '../execution/run-times.ts';
import { tenths } from '../observe/milliseconds.ts';
import type { OutgoingReply } from './outgoing-reply.ts';

/** Up to this size head and body leave as one string, in one write; longer bodies are not copied. */
const oneWriteBytes = 16 * 1024;

/** Server-Timing's value as of now (https://www.w3.org/TR/server-timing/). */
export function serverTiming({ waitedMs, workedMs }: RunTimes): string {
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
  readonly #times: RunTimes;
  readonly #events: ReplyEvents;

  /** @param times of what is replied to, told as they are when the head leaves */
  constructor(response: OutgoingReply, requestId: string, times: RunTimes, events: ReplyEvents) {
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
