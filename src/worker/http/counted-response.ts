// A reply that counts the bytes of its body, for the logs: node tells only what a whole connection has written.
// Must not know what the bytes say.
import { ServerResponse } from 'node:http';

/** Node's ServerResponse, handed to the server as its class of replies. */
export class CountedResponse extends ServerResponse {
  /** Bytes of the body so far; chunked framing does not count. */
  bodyBytes = 0;

  override write(chunk: unknown, encoding?: unknown, done?: unknown): boolean {
    this.#count(chunk, encoding);
    return super.write(chunk, encoding as BufferEncoding, done as () => void);
  }

  override end(chunk?: unknown, encoding?: unknown, done?: unknown): this {
    this.#count(chunk, encoding);
    return super.end(chunk, encoding as BufferEncoding, done as () => void);
  }

  #count(chunk: unknown, encoding: unknown): void {
    if (this.req.method === 'HEAD') return;
    if (typeof chunk === 'string') {
      const named = typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8';
      this.bodyBytes += Buffer.byteLength(chunk, named);
    } else if (chunk instanceof Uint8Array) {
      this.bodyBytes += chunk.length;
    }
  }
}
