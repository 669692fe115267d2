// The input of one connection, cut into requests before node's parser gets it: one at a time, with a whole head of strict form and
// limited length. Input behind a request waits here, and the memory that all connections use for that has a limit.

import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import { type Failure, refusal } from '../failure/failure.ts';
import { type HeadForm, headEnd, strictHeads } from './head-form.ts';
import { ByteCollector, type IncomingRequest } from './request.ts';
import {
  asksHead,
  type BodyFrame,
  checkRequestLine,
  checkUnfinishedLine,
  frameOf,
} from './request-syntax.ts';

/** A connection with input in memory. */
export interface InputHolder extends Indexed {
  /** Only BufferedInput writes it. */
  bufferedBytes: number;
  /** Must release all of its input before this returns. */
  giveUp(): void;
}

/** How much of the limit remains in use after connections had to give up, so that not every further byte ends another one. */
const fillAfterwards = 3 / 4;

/** Counts and limits the input that all connections of a worker keep in memory. */
export class BufferedInput {
  readonly #holders = new IndexedSet<InputHolder>();
  readonly #limit: number;
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  /** Notes how much a connection keeps. Beyond the limit, connections that keep the average or more give up, the oldest first. */
  note(holder: InputHolder, bytes: number): void {
    this.#total += bytes - holder.bufferedBytes;
    holder.bufferedBytes = bytes;
    if (bytes === 0) this.#holders.delete(holder);
    else if (!this.#holders.has(holder)) this.#holders.add(holder);
    if (this.#total > this.#limit) this.#makeRoom();
  }

  #makeRoom(): void {
    const average = this.#total / this.#holders.size;
    for (const holder of this.#holders) {
      if (this.#total <= this.#limit * fillAfterwards) return;
      if (holder.bufferedBytes >= average) holder.giveUp();
    }
  }
}

/** The limit on all headers of a request together, which is node's default. */
export const maxHeadersBytes = 16 * 1024;
/** How much is read ahead while a request is being answered. */
const maxAheadBytes = 64 * 1024;

const lineEnd = Buffer.from('\r\n');
const nothing = Buffer.alloc(0);

const headersTooLarge = refusal(
  'HEADERS_TOO_LARGE',
  `The headers are longer than ${maxHeadersBytes} bytes.`,
);
const bareLineFeed = refusal('BAD_REQUEST', 'A line does not end with CR LF.');
const brokenFrame = refusal('BAD_REQUEST', 'The body is not well-formed HTTP.');
const noRoom: Failure = {
  ...refusal('TOO_MANY_BYTES', 'Too many requests are incomplete. Nothing was executed.'),
  retryAfterSeconds: 1,
};

/** The connection that the input belongs to. */
export interface IntakeEvents {
  /** Whether a request is being answered: the next one then waits. */
  readonly isBusy: boolean;
  /** Gives bytes to node's parser. A request that begins with them exists when this returns. */
  parse(bytes: Buffer): void;
  /** The request that was parsed last; null: there is none, or it was returned before. */
  takeRequest(): IncomingRequest | null;
  /** Whether the reply has begun or is over: the rest of the request is then not kept. */
  readonly isAnswered: boolean;
  /** Answers with a failure, behind the current reply if that request is whole, and closes. */
  refuse(failure: Failure): void;
  /** Pauses or resumes the socket. */
  setReading(on: boolean): void;
}

/** The input of one connection. */
export class Intake implements InputHolder {
  index = -1;
  bufferedBytes = 0;
  readonly #events: IntakeEvents;
  readonly #all: BufferedInput;
  readonly #maxUrlBytes: number;
  readonly #maxHeadersBytes: number;
  readonly #form: HeadForm;
  /** Input that may not be parsed yet. */
  #waiting: ByteCollector | null = null;
  /** The input behind the head that is being parsed at this moment. */
  #behind: Buffer | null = null;
  /** How many bytes of an incomplete head were checked. */
  #checked = 0;
  /** The end of the first line of an incomplete head; 0: unknown. */
  #lineEnd = 0;
  /** Whether node's parser has the first byte of an incomplete head: its timer for requests then runs. */
  #isBegun = false;
  #skippedLine = false;
  /** The body that is being read, and its request. */
  #frame: BodyFrame | null = null;
  #request: IncomingRequest | null = null;
  #bodyBytes = 0;
  #isStopped = false;
  #isOver = false;
  #asksHead = false;

  constructor(
    events: IntakeEvents,
    all: BufferedInput,
    maxUrlBytes: number,
    headersLimit = maxHeadersBytes,
    form = strictHeads,
  ) {
    this.#events = events;
    this.#all = all;
    this.#maxUrlBytes = maxUrlBytes;
    this.#maxHeadersBytes = headersLimit;
    this.#form = form;
  }

  /** Whether another whole head has come. */
  get hasWhole(): boolean {
    const bytes = this.#behind ?? this.#waiting?.bytes();
    return bytes !== undefined && this.#form.findEnd(bytes, 0) >= 0;
  }

  /** Whether the head that was looked at last begins like one of a HEAD request, however it goes on: a reply to it has no body. */
  get asksHead(): boolean {
    return this.#asksHead;
  }

  /** Whether input waits. */
  get hasMore(): boolean {
    return this.#waiting !== null;
  }

  /** Takes what the socket has read. The bytes are only valid until this returns. */
  take(segment: Buffer): void {
    if (this.#isOver) return;
    if (this.#waiting === null) {
      const used = this.#advance(segment);
      if (!this.#isOver && used < segment.length) this.#keep(copyOf(segment, used, segment.length));
    } else {
      this.#waiting.append(segment);
      this.#advanceWaiting();
    }
    this.#settle();
  }

  /** Goes on with the input that waits; to be called when the request before it has been answered. */
  goOn(): void {
    if (this.#isOver) return;
    this.#advanceWaiting();
    this.#settle();
  }

  /** Releases the input and parses nothing more. */
  end(): void {
    this.#isOver = true;
    this.#waiting = null;
    if (this.bufferedBytes > 0) this.#all.note(this, 0);
  }

  giveUp(): void {
    if (this.#frame === null && this.#waiting !== null) {
      this.#asksHead = asksHead(this.#waiting.bytes(), 0);
    }
    this.#fail(noRoom);
  }

  #keep(own: Buffer): void {
    this.#waiting = new ByteCollector();
    this.#waiting.append(own);
  }

  #advanceWaiting(): void {
    if (this.#waiting === null) return;
    const bytes = this.#waiting.bytes();
    const used = this.#advance(bytes);
    if (this.#isOver || used === 0) return;
    this.#waiting = null;
    if (used < bytes.length) this.#keep(withoutRest(bytes.subarray(used)));
  }

  #settle(): void {
    if (this.#isOver) return;
    const buffered = (this.#waiting?.length ?? 0) + this.#bodyBytes;
    if (buffered !== this.bufferedBytes) this.#all.note(this, buffered);
    // A body that its reader does not take pauses the socket by itself.
    if (this.#frame !== null || (this.#waiting === null && !this.#isStopped)) return;
    this.#isStopped = this.#events.isBusy && (this.#waiting?.length ?? 0) >= maxAheadBytes;
    this.#events.setReading(!this.#isStopped);
  }

  /** Parses what may be parsed now, and returns how many bytes that were. */
  #advance(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length) {
      const from = at;
      if (this.#frame !== null) at = this.#advanceBody(this.#frame, bytes, at);
      else if (!this.#events.isBusy) at = this.#advanceHead(bytes, at);
      if (this.#isOver || at === from) break;
    }
    return at;
  }

  #advanceBody(frame: BodyFrame, bytes: Buffer, at: number): number {
    const end = frame.take(bytes, at);
    if (end < 0) return this.#fail(brokenFrame);
    this.#bodyBytes = this.#events.isAnswered ? 0 : this.#bodyBytes + end - at;
    // A copy: node's parser hands out the bytes of a body as they are in memory.
    this.#events.parse(Buffer.from(part(bytes, at, end)));
    if (this.#isOver) return end;
    // Two parsers have read the same bytes. If they differ, neither can be trusted.
    if (frame.isDone !== this.#request?.complete) return this.#fail(brokenFrame);
    if (frame.isDone) this.#endBody();
    return end;
  }

  #endBody(): void {
    this.#frame = null;
    this.#request = null;
    this.#bodyBytes = 0;
  }

  /** Returns where the head ends, or `from` if it is incomplete. */
  #advanceHead(bytes: Buffer, from: number): number {
    if (!this.#isBegun && !this.#skippedLine) {
      // Old clients send an empty line behind a body (RFC 9112 section 2.2).
      const after = this.#form.skipEmptyLine(bytes, from);
      if (after !== null) return this.#skipLine(from, after);
    }
    this.#asksHead = asksHead(bytes, from);
    const end = this.#form.findEnd(bytes, from + Math.max(0, this.#checked - headEnd.length));
    if (end < 0) return this.#awaitHead(bytes, from);
    const head = this.#form.toStrictHead(part(bytes, from, end));
    const line = head.indexOf(lineEnd);
    const failure =
      checkRequestLine(head, 0, line, this.#maxUrlBytes) ??
      (head.length - headEnd.length - line > this.#maxHeadersBytes ? headersTooLarge : null);
    if (failure !== null) return this.#fail(failure);
    return this.#parseHead(head, bytes, end);
  }

  #skipLine(from: number, after: number): number {
    if (after < 0) return this.#fail(bareLineFeed);
    this.#skippedLine = after > from;
    return after;
  }

  #awaitHead(bytes: Buffer, from: number): number {
    const line = this.#findLineEnd(bytes, from);
    const failure = this.#checkUnfinished(bytes, from, line);
    if (failure !== null) return this.#fail(failure);
    this.#lineEnd = line < 0 ? 0 : line - from;
    this.#checked = bytes.length - from;
    if (!this.#isBegun) {
      this.#isBegun = true;
      this.#events.parse(part(bytes, from, from + 1));
    }
    return from;
  }

  #findLineEnd(bytes: Buffer, from: number): number {
    if (this.#lineEnd > 0) return from + this.#lineEnd;
    return this.#form.findLineEnd(bytes, from + Math.max(0, this.#checked - 1));
  }

  #checkUnfinished(bytes: Buffer, from: number, line: number): Failure | null {
    const form = this.#form;
    if (form.hasBadLineEnd(bytes, from + Math.max(0, this.#checked - 1))) return bareLineFeed;
    if (line < 0) return checkUnfinishedLine(bytes, from, this.#maxUrlBytes);
    if (bytes.length - line > this.#maxHeadersBytes + headEnd.length) return headersTooLarge;
    if (this.#lineEnd > 0) return null;
    const first = form.toStrictLine(bytes.subarray(from, line));
    return checkRequestLine(first, 0, first.length, this.#maxUrlBytes);
  }

  /** @param head in strict form; it stands in `bytes` up to `end` */
  #parseHead(head: Buffer, bytes: Buffer, end: number): number {
    const start = this.#isBegun ? 1 : 0;
    this.#isBegun = false;
    this.#skippedLine = false;
    this.#checked = 0;
    this.#lineEnd = 0;
    this.#behind = end === bytes.length ? nothing : bytes.subarray(end);
    this.#events.parse(part(head, start, head.length));
    this.#behind = null;
    if (this.#isOver) return end;
    const request = this.#events.takeRequest();
    if (request === null) return this.#fail(brokenFrame);
    this.#frame = frameOf(request);
    if (request.complete !== (this.#frame === null)) return this.#fail(brokenFrame);
    if (this.#frame !== null) this.#request = request;
    return end;
  }

  #fail(failure: Failure): number {
    this.end();
    this.#events.refuse(failure);
    return 0;
  }
}

function part(bytes: Buffer, from: number, end: number): Buffer {
  return from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end);
}

function copyOf(bytes: Buffer, from: number, end: number): Buffer {
  const own = Buffer.allocUnsafeSlow(end - from);
  bytes.copy(own, 0, from, end);
  return own;
}

/** The same bytes, copied if they would keep a much larger buffer alive: only they are counted. */
function withoutRest(bytes: Buffer): Buffer {
  return bytes.buffer.byteLength <= 2 * bytes.length ? bytes : copyOf(bytes, 0, bytes.length);
}
