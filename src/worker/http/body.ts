// A request's body, read to its end within a limit.
// Must not know what is in it.
import type { IncomingMessage } from 'node:http';
import { type Failure, refusal } from '../failure/failure.ts';
import { ByteCollector } from './byte-collector.ts';
import type { OutgoingReply } from './outgoing-reply.ts';

/** Exactly one is called, once; none when the client goes away first. */
export type BodyReader = {
  readonly complete: (body: Buffer) => void;
  readonly failed: (failure: Failure) => void;
};

const tooLarge = (maxBytes: number) =>
  refusal('BODY_TOO_LARGE', `The body is longer than ${maxBytes} bytes.`);

const codedBody = refusal('TRANSFER_CODING', 'No transfer coding but chunked is understood here.');

const compressedBody = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must not be compressed: no content coding is understood here.',
);

/** Reads the whole body. A body that is too long fails as soon as that is known; only a good one is asked for. */
export function readBody(
  request: IncomingMessage,
  response: OutgoingReply,
  maxBytes: number,
  reader: BodyReader,
): void {
  const failure = checkAnnouncement(request, maxBytes);
  if (failure !== null) {
    reader.failed(failure);
    return;
  }
  const body = new ByteCollector();
  const take = (chunk: Buffer) => {
    body.append(chunk);
    if (body.length <= maxBytes) return;
    request.off('data', take);
    request.off('end', complete);
    request.pause();
    reader.failed(tooLarge(maxBytes));
  };
  const complete = () => reader.complete(body.bytes());
  request.on('data', take);
  request.on('end', complete);
  if (response.expectation === '100-continue') response.writeContinue();
}

function checkAnnouncement({ headers }: IncomingMessage, maxBytes: number): Failure | null {
  if (Number(headers['content-length'] ?? 0) > maxBytes) return tooLarge(maxBytes);
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    return compressedBody;
  }
  // Node takes any coding before chunked off the frame only: the body would be read as what it is not.
  return (headers['transfer-encoding'] ?? 'chunked').toLowerCase() === 'chunked' ? null : codedBody;
}
