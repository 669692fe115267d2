// The input of one connection, cut into requests: one at a time, with a whole head of limited length, then its body. Input behind a request
// waits here, and the memory that all connections use for that has a limit.
import { type Failure, refusal } from '../failure/failure.ts';
import type { BodyFrame } from './body-frame.ts';
import type { BufferedInput, InputHolder } from './buffered-input.ts';
import { ByteCollector } from './byte-collector.ts';
import { type HeadForm, headEnd } from './head-form.ts';
import {
  bareLineFeed,
  type HeadLimits,
  headersTooLarge,
  type ParsedHead,
  parseHead,
  type RefusedHead,
} from './head-parser.ts';
import { asksHead, checkRequestLine, checkUnfinishedLine } from './request-line.ts';

/** How much is read ahead while a request is being answered. */
const maxAheadBytes = 64 * 1024;

const nothing = Buffer.alloc(0);

const brokenFrame = refusal('BAD_REQUEST', 'The body is not well-formed HTTP.');
const noRoom: Failure = {
  ...refusal('TOO_MANY_BYTES', 'Too many requests are incomplete. Nothing was executed.'),
  retryAfterSeconds: 1,
};

/** The receiver of one body. */
export interface BodyTarget {
  /** Whether pieces are wanted now: they wait otherwise. */
  readonly takesPieces: boolean;
  take(piece: Buffer): void;
  /** The body is over, and with it the request. */
  end(): void;
}

/** The connection that the input belongs to. */
export interface IntakeEvents {
  /** Whether a request is being answered: the next one then waits. */
  readonly isBusy: boolean;
  /** Whether the reply has begun or is over: the rest of the request is then not kept. */
  readonly isAnswered: boolean;
  /** A request begins. Returns the receiver of its body. */
  begin(head: ParsedHead): BodyTarget;
  /** Answers with a failure, behind the current reply if that request is whole, and closes. */
  refuse(failure: Failure): void;
  /** Pauses or resumes the socket. */
  setReading(on: boolean): void;
}

/** The settings that all connections of a server share. */
export type IntakeSettings = HeadLimits & {
  readonly buffered: BufferedInput;
  readonly heads: HeadForm;
};

/** The body that is being read. */
type Body = { readonly frame: BodyFrame; readonly target: BodyTarget };

/** The input of one connection. */
export class Intake implements InputHolder {
  index = -1;
  bufferedBytes = 0;
  readonly #events: IntakeEvents;
  readonly #settings: IntakeSettings;
  /** Input that may not be parsed yet. */
  #waiting: ByteCollector | null = null;
  /** The input behind the head that begins a request at this moment. */
  #behind: Buffer | null = null;
  /** How many bytes of an incomplete head were checked. */
  #checked = 0;
  /** The end of the first line of an incomplete head; 0: unknown. */
  #lineEnd = 0;
  #skippedLine = false;
  #body: Body | null = null;
  #bodyBytes = 0;
  /** The length of the head before the body that is being read: it is kept until that has come. */
  #headBytes = 0;
  #isAdvancing = false;
  #isStopped = false;
  #isOver = false;
  #asksHead = false;

  constructor(events: IntakeEvents, settings: IntakeSettings) {
    this.#events = events;
    this.#settings = settings;
  }

  /** Whether another whole head has come. */
  get hasWhole(): boolean {
    const bytes = this.#behind ?? this.#waiting?.bytes();
    return bytes !== undefined && this.#settings.heads.findEnd(bytes, 0) >= 0;
  }

  /** Whether a head has begun and is incomplete. */
  get isInHead(): boolean {
    return this.#checked > 0;
  }

  /** Whether the head that was refused began like one of a HEAD request, however it went on: a reply to it has no body. */
  get asksHead(): boolean {
    return this.#asksHead;
  }

  /** Whether input waits. */
  get hasMore(): boolean {
    return this.#waiting !== null;
  }

  /** Takes what the socket has read. The bytes must not change afterwards. */
  take(segment: Buffer): void {
    if (this.#isOver) return;
    if (this.#waiting === null) {
      const used = this.#advance(segment);
      if (!this.#isOver && used < segment.length) this.#keep(segment, used);
    } else {
      this.#waiting.append(segment);
      this.#advanceWaiting();
    }
    this.#settle();
  }

  /** Goes on with the input that waits: the request before it has been answered, or its body is wanted now. */
  goOn(): void {
    if (this.#isOver || this.#isAdvancing) return;
    this.#advanceWaiting();
    this.#settle();
  }

  /** Releases the input and parses nothing more. */
  end(): void {
    this.#isOver = true;
    this.#waiting = null;
    if (this.bufferedBytes > 0) this.#settings.buffered.note(this, 0);
  }

  giveUp(): void {
    this.#fail(noRoom, this.#body === null ? (this.#waiting?.bytes() ?? null) : null, 0);
  }

  #keep(bytes: Buffer, from: number): void {
    this.#waiting = new ByteCollector();
    this.#waiting.append(from === 0 ? bytes : withoutRest(bytes.subarray(from)));
  }

  #advanceWaiting(): void {
    if (this.#waiting === null) return;
    const bytes = this.#waiting.bytes();
    const used = this.#advance(bytes);
    if (this.#isOver || used === 0) return;
    this.#waiting = null;
    if (used < bytes.length) this.#keep(bytes, used);
  }

  #settle(): void {
    if (this.#isOver) return;
    const waiting = this.#waiting?.length ?? 0;
    const buffered = waiting + this.#headBytes + this.#bodyBytes;
    if (buffered !== this.bufferedBytes) this.#settings.buffered.note(this, buffered);
    if (this.#isOver || (waiting === 0 && !this.#isStopped)) return;
    const isHeldUp = this.#body === null ? this.#events.isBusy : !this.#body.target.takesPieces;
    this.#isStopped = isHeldUp && waiting >= maxAheadBytes;
    this.#events.setReading(!this.#isStopped);
  }

  /** Parses what may be parsed now, and returns how many bytes that were. */
  #advance(bytes: Buffer): number {
    this.#isAdvancing = true;
    let at = 0;
    while (at < bytes.length) {
      const from = at;
      if (this.#body !== null) at = this.#advanceBody(this.#body, bytes, at);
      else if (!this.#events.isBusy) at = this.#advanceHead(bytes, at);
      if (this.#isOver || at === from) break;
    }
    this.#isAdvancing = false;
    return at;
  }

  #advanceBody({ frame, target }: Body, bytes: Buffer, at: number): number {
    if (!target.takesPieces) return at;
    const end = frame.read(bytes, at, (piece) => target.take(piece));
    if (this.#isOver) return end;
    if (end < 0) return this.#fail(brokenFrame, null, at);
    this.#bodyBytes = this.#events.isAnswered ? 0 : this.#bodyBytes + end - at;
    if (this.#events.isAnswered || frame.isDone) this.#headBytes = 0;
    if (frame.isDone) {
      this.#body = null;
      this.#bodyBytes = 0;
      target.end();
    }
    return end;
  }

  /** Returns where the head ends, or `from` if it is incomplete. */
  #advanceHead(bytes: Buffer, from: number): number {
    const { heads } = this.#settings;
    if (this.#checked === 0 && !this.#skippedLine) {
      // Old clients send an empty line behind a body (RFC 9112 section 2.2).
      const after = heads.skipEmptyLine(bytes, from);
      if (after !== null) return this.#skipLine(bytes, from, after);
    }
    const mayBeWhole =
      this.#checked === 0 ||
      heads.findEnd(bytes, from + Math.max(0, this.#checked - headEnd.length)) >= 0;
    const head = mayBeWhole ? parseHead(bytes, from, this.#settings) : null;
    if (head?.ok === true) return this.#begin(head, bytes, from, head.section.end);
    return heads.toStrictHead === null
      ? this.#refuseOrAwait(head, bytes, from)
      : this.#advanceLooseHead(heads.toStrictHead, bytes, from);
  }

  /** The same for a head that is at fault or incomplete by the strict form. */
  #advanceLooseHead(toStrict: (head: Buffer) => Buffer, bytes: Buffer, from: number): number {
    const end = this.#settings.heads.findEnd(bytes, from);
    if (end < 0) return this.#awaitHead(bytes, from);
    const head = parseHead(toStrict(bytes.subarray(from, end)), 0, this.#settings);
    return head?.ok === true
      ? this.#begin(head, bytes, from, end)
      : this.#refuseOrAwait(head, bytes, from);
  }

  #refuseOrAwait(head: RefusedHead | null, bytes: Buffer, from: number): number {
    return head === null ? this.#awaitHead(bytes, from) : this.#fail(head.failure, bytes, from);
  }

  #skipLine(bytes: Buffer, from: number, after: number): number {
    if (after < 0) return this.#fail(bareLineFeed, bytes, from);
    this.#skippedLine = after > from;
    return after;
  }

  #awaitHead(bytes: Buffer, from: number): number {
    const line = this.#findLineEnd(bytes, from);
    const failure = this.#checkUnfinished(bytes, from, line);
    if (failure !== null) return this.#fail(failure, bytes, from);
    this.#lineEnd = line < 0 ? 0 : line - from;
    this.#checked = bytes.length - from;
    return from;
  }

  #findLineEnd(bytes: Buffer, from: number): number {
    if (this.#lineEnd > 0) return from + this.#lineEnd;
    return this.#settings.heads.findLineEnd(bytes, from + Math.max(0, this.#checked - 1));
  }

  #checkUnfinished(bytes: Buffer, from: number, line: number): Failure | null {
    const { heads, maxUrlBytes, maxHeadersBytes } = this.#settings;
    if (heads.hasBadLineEnd(bytes, from + Math.max(0, this.#checked - 1))) return bareLineFeed;
    if (line < 0) return checkUnfinishedLine(bytes, from, maxUrlBytes);
    if (bytes.length - line > maxHeadersBytes + headEnd.length) return headersTooLarge;
    if (this.#lineEnd > 0) return null;
    const first = heads.toStrictLine(bytes.subarray(from, line));
    return checkRequestLine(first, 0, first.length, maxUrlBytes);
  }

  /** Begins a request, whose head stands in `bytes` between `from` and `end`. */
  #begin(head: ParsedHead, bytes: Buffer, from: number, end: number): number {
    this.#skippedLine = false;
    this.#checked = 0;
    this.#lineEnd = 0;
    this.#behind = end === bytes.length ? nothing : bytes.subarray(end);
    const target = this.#events.begin(head);
    this.#behind = null;
    if (head.frame !== null) {
      this.#body = { frame: head.frame, target };
      this.#headBytes = this.#events.isAnswered ? 0 : end - from;
    }
    return end;
  }

  /** @param bytes input that begins with a head at `from`; null: a body is at fault */
  #fail(failure: Failure, bytes: Buffer | null, from: number): number {
    this.#asksHead = bytes !== null && asksHead(bytes, from);
    this.end();
    this.#events.refuse(failure);
    return from;
  }
}

/** The same bytes, copied if they would keep a much larger buffer alive: only they are counted. */
function withoutRest(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength <= 2 * bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
