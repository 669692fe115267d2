// A request's body, read to its end within a limit.
// Must not know what is in it.
import type { IncomingMessage } from 'node:http';
import { type Failure, refusal } from './failure.ts';

/** Exactly one is called, once; none when the client goes away first. */
export type BodyReader = {
  readonly complete: (body: Buffer) => void;
  readonly failed: (failure: Failure) => void;
};

const tooLarge = (maxBytes: number) =>
  refusal(413, 'BODY_TOO_LARGE', `The body is longer than ${maxBytes} bytes.`);

const codedBody = refusal(
  400,
  'TRANSFER_CODING',
  'No transfer coding but chunked is understood here.',
);

/** Reads the whole body. A body that is too long fails as soon as that is known. */
export function readBody(request: IncomingMessage, maxBytes: number, reader: BodyReader): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
    reader.failed(tooLarge(maxBytes));
    return;
  }
  // Node takes any coding before chunked off the frame only: the body would be read as what it is not.
  if ((request.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    reader.failed(codedBody);
    return;
  }
  const chunks: Buffer[] = [];
  let length = 0;
  const take = (chunk: Buffer) => {
    length += chunk.length;
    chunks.push(chunk);
    if (length <= maxBytes) return;
    request.off('data', take);
    request.off('end', complete);
    request.pause();
    reader.failed(tooLarge(maxBytes));
  };
  const complete = () => reader.complete(Buffer.concat(chunks, length));
  request.on('data', take);
  request.on('end', complete);
}
