// A request as the rest of the worker sees it: its head, and its body, read within a limit.
import type { Socket } from 'node:net';
import { type Failure, refusal } from '../failure/failure.ts';
import { ByteCollector } from './byte-collector.ts';
import type { ParsedHead } from './head-parser.ts';
import { type FieldName, listFields, type RequestHeaders } from './header-section.ts';
import type { BodyTarget } from './intake.ts';

export type { RequestHeaders };

/** The expectation of a client before it sends a body (RFC 9110 section 10.1.1). */
export type ExpectHeader = 'none' | '100-continue' | 'unknown';

/** The connection that a body comes from. */
export interface BodySource {
  /** Pieces that have waited may be given now. */
  bodyIsWanted(): void;
}

/** The receiver of a body's pieces. */
export type BodyReceiver = {
  readonly take: (piece: Buffer) => void;
  readonly end: () => void;
};

const continueExpected = /(?:^|\W)100-continue(?:$|\W)/i;

/** A request whose head is well-formed. */
export class IncomingRequest implements BodyTarget {
  readonly method: string;
  /** The request target. */
  readonly url: string;
  readonly httpVersion: '1.0' | '1.1';
  readonly headers: RequestHeaders;
  readonly headerCount: number;
  /** Headers that may occur once and occur several times. */
  readonly repeated: readonly FieldName[];
  readonly socket: Socket;
  /** Whether all of it has come. */
  complete: boolean;
  readonly #headerLines: string;
  readonly #source: BodySource;
  /** Null: the body is not wanted yet, and waits. */
  #receiver: BodyReceiver | null = null;

  constructor(
    { method, target, httpVersion, section, frame }: ParsedHead,
    socket: Socket,
    source: BodySource,
  ) {
    this.method = method;
    this.url = target;
    this.httpVersion = httpVersion;
    this.headers = section.headers;
    this.headerCount = section.count;
    this.repeated = section.repeated;
    this.socket = socket;
    this.complete = frame === null;
    this.#headerLines = section.text;
    this.#source = source;
  }

  /** All headers as they were sent: name, value, name, value. */
  get rawHeaders(): readonly string[] {
    return listFields(this.#headerLines);
  }

  /** HTTP/1.0 has no expectations. */
  get expectation(): ExpectHeader {
    const { expect } = this.headers;
    if (expect === undefined || this.httpVersion === '1.0') return 'none';
    return continueExpected.test(expect) ? '100-continue' : 'unknown';
  }

  get takesPieces(): boolean {
    return this.#receiver !== null;
  }

  /** Gives the body to a receiver from now on: in this call, or when it comes. */
  readInto(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (this.complete) receiver.end();
    else this.#source.bodyIsWanted();
  }

  /** Drops what comes of the body. @param end called when all of it has come */
  drop(end: () => void = () => {}): void {
    this.readInto({ take: () => {}, end });
  }

  take(piece: Buffer): void {
    this.#receiver?.take(piece);
  }

  end(): void {
    this.complete = true;
    this.#receiver?.end();
  }
}

/** Whether the head announces a body. Without one the request is complete with its head. */
export function announcesBody(request: Pick<IncomingRequest, 'headers'>): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length ?? '0') !== '0';
}

/** Exactly one of them is called, once; none if the client goes away first. */
export type BodyReader = {
  readonly complete: (body: Buffer) => void;
  readonly failed: (failure: Failure) => void;
};

const tooLarge = (maxBytes: number) =>
  refusal('BODY_TOO_LARGE', `The body is longer than ${maxBytes} bytes.`);

const codedBody = refusal('TRANSFER_CODING', 'The only supported transfer coding is chunked.');

const compressedBody = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must not be compressed: content codings are not supported.',
);

/** Reads the whole body. A body that is too long fails as soon as that is known, and 100 (Continue) is sent only before a good one. */
export function readBody(
  request: IncomingRequest,
  reply: { readonly writeContinue: () => void },
  maxBytes: number,
  reader: BodyReader,
): void {
  const failure = checkAnnouncement(request, maxBytes);
  if (failure !== null) {
    reader.failed(failure);
    return;
  }
  const body = new ByteCollector();
  if (request.expectation === '100-continue' && !request.complete) reply.writeContinue();
  request.readInto({
    take: (piece) => {
      body.append(piece);
      if (body.length <= maxBytes) return;
      request.drop();
      reader.failed(tooLarge(maxBytes));
    },
    end: () => reader.complete(body.bytes()),
  });
}

function checkAnnouncement({ headers }: IncomingRequest, maxBytes: number): Failure | null {
  if (Number(headers['content-length'] ?? 0) > maxBytes) return tooLarge(maxBytes);
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    return compressedBody;
  }
  // Another coding before it is not decoded: the body would be taken for something else.
  return (headers['transfer-encoding'] ?? 'chunked').toLowerCase() === 'chunked' ? null : codedBody;
}
