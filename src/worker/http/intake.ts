// What comes in on one connection, cut into requests before node's parser sees it: one at a time, each head whole,
// strict in form and bounded in length, and nothing behind it. Must not know what requests say, nor how they are answered.

import type { IncomingMessage } from 'node:http';
import { type Failure, refusal } from '../failure/failure.ts';
import { type Indexed, IndexedSet } from '../indexed-set.ts';
import {
  type BodyFrame,
  checkRequestLine,
  checkUnfinishedLine,
  frameOf,
} from './request-syntax.ts';

/** Grows by doubling, so that any number of pieces costs as much as twice their bytes. */
export class ByteCollector {
  length = 0;
  #bytes: Buffer = Buffer.alloc(0);

  /** Takes a piece. The first one is kept as it is: nobody may write to it afterwards. */
  append(piece: Buffer): void {
    const needed = this.length + piece.length;
    if (this.length === 0) {
      this.#bytes = piece;
    } else {
      if (needed > this.#bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.length, 1024));
        this.#bytes.copy(larger, 0, 0, this.length);
        this.#bytes = larger;
      }
      piece.copy(this.#bytes, this.length);
    }
    this.length = needed;
  }

  /** All of them, valid until the next piece is taken. */
  bytes(): Buffer {
    return this.#bytes.length === this.length ? this.#bytes : this.#bytes.subarray(0, this.length);
  }
}

/** Whose bytes are counted. */
export interface Holder extends Indexed {
  /** Written by HeldBytes alone. */
  heldBytes: number;
  /** There is no room for it: it must hold nothing when this returns. */
  giveUp(): void;
}

/** What is left over after some had to go: else the next byte would have to find the next one. */
const roomAfterwards = 3 / 4;

/** The bytes of one worker's clients. */
export class HeldBytes {
  readonly #holders = new IndexedSet<Holder>();
  readonly #limit: number;
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  /** A holder holds so much from now on. Beyond the limit those with the average and more go, the oldest first. */
  note(holder: Holder, bytes: number): void {
    this.#total += bytes - holder.heldBytes;
    holder.heldBytes = bytes;
    if (bytes === 0) this.#holders.delete(holder);
    else if (!this.#holders.has(holder)) this.#holders.add(holder);
    if (this.#total > this.#limit) this.#makeRoom();
  }

  #makeRoom(): void {
    const average = this.#total / this.#holders.size;
    for (const holder of this.#holders) {
      if (this.#total <= this.#limit * roomAfterwards) return;
      if (holder.heldBytes >= average) holder.giveUp();
    }
  }
}

/** All headers of a request together, like node's own default. */
export const mostHeadersBytes = 16 * 1024;
/** So much is read ahead of a request that is being answered. */
const mostAheadBytes = 64 * 1024;

const [carriageReturn, lineFeed] = [0x0d, 0x0a];
const lineEnd = Buffer.from('\r\n');
const headEnd = Buffer.from('\r\n\r\n');
const nothing = Buffer.alloc(0);

const headersTooLarge = refusal(
  'HEADERS_TOO_LARGE',
  `The headers are longer than ${mostHeadersBytes} bytes.`,
);
const bareLineFeed = refusal('BAD_REQUEST', 'A line does not end with CR LF.');
const brokenFrame = refusal('BAD_REQUEST', 'The body is not well-formed HTTP.');
const noRoom: Failure = {
  ...refusal('TOO_MANY_BYTES', 'Too many requests are only half there. Nothing was executed.'),
  retryAfterSeconds: 1,
};

/** The connection whose bytes these are. */
export interface IntakeEvents {
  /** A request is being answered: the one behind it waits. */
  readonly isBusy: boolean;
  /** Has node's parser take bytes. A request that begins with them is there when this returns. */
  parse(bytes: Buffer): void;
  /** The request that was parsed last, unless it has been asked for before; null: there is none. */
  takeRequest(): IncomingMessage | null;
  /** The reply has begun, or is over: what still comes of the request is not kept. */
  readonly isAnswered: boolean;
  /** Answers with a failure, after the request that is being answered if that has come whole, and closes. */
  refuse(failure: Failure): void;
  /** Reads no more, or again. */
  setReading(on: boolean): void;
}

/** The bytes of one connection. */
export class Intake implements Holder {
  index = -1;
  heldBytes = 0;
  readonly #events: IntakeEvents;
  readonly #board: HeldBytes;
  readonly #maxUrlBytes: number;
  readonly #maxHeadersBytes: number;
  /** What may not be parsed yet; null: nothing. */
  #held: ByteCollector | null = null;
  /** What stands behind the head that is being parsed, while it is. */
  #behind: Buffer | null = null;
  /** Of the head that is not whole yet: how much was looked at, and where its first line ends (0: not known). */
  #seen = 0;
  #lineEnd = 0;
  /** Its first byte was parsed: so node's own clock runs, and the end of the connection is the end of a request. */
  #isBegun = false;
  #skippedLine = false;
  /** The body that is being read. */
  #frame: BodyFrame | null = null;
  #request: IncomingMessage | null = null;
  #bodyBytes = 0;
  #isStopped = false;
  #isOver = false;

  constructor(
    events: IntakeEvents,
    board: HeldBytes,
    maxUrlBytes: number,
    maxHeadersBytes = mostHeadersBytes,
  ) {
    this.#events = events;
    this.#board = board;
    this.#maxUrlBytes = maxUrlBytes;
    this.#maxHeadersBytes = maxHeadersBytes;
  }

  /** Whether another whole head has come. */
  get hasWhole(): boolean {
    return (this.#behind ?? this.#held?.bytes())?.includes(headEnd) === true;
  }

  /** Whether there is anything to go on with. */
  get hasMore(): boolean {
    return this.#held !== null;
  }

  /** Takes what the socket has read; the bytes are others when this has returned. */
  take(segment: Buffer): void {
    if (this.#isOver) return;
    if (this.#held === null) {
      const used = this.#advance(segment);
      if (!this.#isOver && used < segment.length) this.#hold(copyOf(segment, used, segment.length));
    } else {
      this.#held.append(segment);
      this.#advanceHeld();
    }
    this.#settle();
  }

  /** The request before has been answered: goes on with what was held. */
  goOn(): void {
    if (this.#isOver) return;
    this.#advanceHeld();
    this.#settle();
  }

  /** Nothing more is parsed, nothing is held. */
  end(): void {
    this.#isOver = true;
    this.#held = null;
    if (this.heldBytes > 0) this.#board.note(this, 0);
  }

  giveUp(): void {
    this.#fail(noRoom);
  }

  #hold(own: Buffer): void {
    this.#held = new ByteCollector();
    this.#held.append(own);
  }

  #advanceHeld(): void {
    const held = this.#held;
    if (held === null) return;
    const bytes = held.bytes();
    const used = this.#advance(bytes);
    if (this.#isOver || used === 0) return;
    this.#held = null;
    if (used < bytes.length) this.#hold(withoutRest(bytes.subarray(used)));
  }

  #settle(): void {
    if (this.#isOver) return;
    const held = (this.#held?.length ?? 0) + this.#bodyBytes;
    if (held !== this.heldBytes) this.#board.note(this, held);
    // A body that is not taken stops the socket by itself.
    if (this.#frame !== null || (this.#held === null && !this.#isStopped)) return;
    this.#isStopped = this.#events.isBusy && (this.#held?.length ?? 0) >= mostAheadBytes;
    this.#events.setReading(!this.#isStopped);
  }

  /** Has parsed what may be parsed now; returns how many bytes that were. */
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
    // Node's parser hands out the bytes of a body as they lie.
    this.#events.parse(Buffer.from(part(bytes, at, end)));
    if (this.#isOver) return end;
    // Two have read the same bytes: where they differ, neither is to be trusted.
    if (frame.isDone !== this.#request?.complete) return this.#fail(brokenFrame);
    if (frame.isDone) this.#endBody();
    return end;
  }

  #endBody(): void {
    this.#frame = null;
    this.#request = null;
    this.#bodyBytes = 0;
  }

  /** Returns where the head ends, or `from` while it has not. */
  #advanceHead(bytes: Buffer, from: number): number {
    if (bytes[from] === carriageReturn && !this.#isBegun && !this.#skippedLine) {
      return this.#skipEmptyLine(bytes, from);
    }
    const found = bytes.indexOf(headEnd, from + Math.max(0, this.#seen - headEnd.length));
    if (found < 0) return this.#awaitHead(bytes, from);
    const line = this.#findLineEnd(bytes, from);
    const failure =
      checkRequestLine(bytes, from, line, this.#maxUrlBytes) ??
      (found - line > this.#maxHeadersBytes ? headersTooLarge : null);
    if (failure !== null) return this.#fail(failure);
    return this.#parseHead(bytes, from, found + headEnd.length);
  }

  /** Clients of old send one behind a body (RFC 9112 section 2.2). */
  #skipEmptyLine(bytes: Buffer, from: number): number {
    if (from + 1 === bytes.length) return from;
    this.#skippedLine = true;
    return bytes[from + 1] === lineFeed ? from + 2 : this.#fail(bareLineFeed);
  }

  #awaitHead(bytes: Buffer, from: number): number {
    const line = this.#findLineEnd(bytes, from);
    const failure = this.#checkUnfinished(bytes, from, line);
    if (failure !== null) return this.#fail(failure);
    this.#lineEnd = line < 0 ? 0 : line - from;
    this.#seen = bytes.length - from;
    if (!this.#isBegun) {
      this.#isBegun = true;
      this.#events.parse(part(bytes, from, from + 1));
    }
    return from;
  }

  #findLineEnd(bytes: Buffer, from: number): number {
    if (this.#lineEnd > 0) return from + this.#lineEnd;
    return bytes.indexOf(lineEnd, from + Math.max(0, this.#seen - 1));
  }

  #checkUnfinished(bytes: Buffer, from: number, line: number): Failure | null {
    if (hasBareLineFeed(bytes, from + Math.max(0, this.#seen - 1))) return bareLineFeed;
    if (line < 0) return checkUnfinishedLine(bytes, from, this.#maxUrlBytes);
    if (bytes.length - line > this.#maxHeadersBytes + headEnd.length) return headersTooLarge;
    return this.#lineEnd > 0 ? null : checkRequestLine(bytes, from, line, this.#maxUrlBytes);
  }

  #parseHead(bytes: Buffer, from: number, end: number): number {
    const start = this.#isBegun ? from + 1 : from;
    this.#isBegun = false;
    this.#skippedLine = false;
    this.#seen = 0;
    this.#lineEnd = 0;
    this.#behind = end === bytes.length ? nothing : bytes.subarray(end);
    this.#events.parse(part(bytes, start, end));
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

/** The same, in memory of their own where they would keep much more of it: only they are counted. */
function withoutRest(bytes: Buffer): Buffer {
  return bytes.buffer.byteLength <= 2 * bytes.length ? bytes : copyOf(bytes, 0, bytes.length);
}

function hasBareLineFeed(bytes: Buffer, from: number): boolean {
  let at = bytes.indexOf(lineFeed, from);
  while (at >= 0) {
    if (bytes[at - 1] !== carriageReturn) return true;
    at = bytes.indexOf(lineFeed, at + 1);
  }
  return false;
}
