// A reply's bytes on node:http: whole with Content-Length, or streamed.
// Must not know what the bytes say.
import type { ServerResponse } from 'node:http';
import type { Transport } from '../reply/writer.ts';
import { jsonHeaders } from './failure.ts';

/** Up to this size head and body leave as one string, in one write; longer bodies are not copied. */
const oneWriteBytes = 16 * 1024;

/** Sends one 200 reply. `headers` is asked for when the head is written, so that it can tell times. */
export class ReplyTransport implements Transport {
  readonly #response: ServerResponse;
  readonly #headers: () => readonly string[];

  constructor(response: ServerResponse, headers: () => readonly string[]) {
    this.#response = response;
    this.#headers = headers;
  }

  sendWhole(bytes: Buffer, sent: () => void): void {
    const response = this.#response;
    response.writeHead(200, [
      ...jsonHeaders,
      ...this.#headers(),
      'Content-Length',
      String(bytes.length),
    ]);
    if (bytes.length <= oneWriteBytes) {
      response.end(bytes.toString('latin1'), 'latin1');
      sent();
    } else {
      response.end(bytes, sent);
    }
  }

  begin(): void {
    this.#response.writeHead(200, [...jsonHeaders, ...this.#headers()]);
  }

  sendPart(bytes: Buffer, sent: () => void): boolean {
    return this.#response.write(bytes, sent);
  }

  finish(): void {
    this.#response.end();
  }
}
