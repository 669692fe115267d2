// One client's connection: its socket, the input that is cut into requests, and the request that is being answered.
import type { Socket } from 'node:net';
import type { Indexed } from '../../shared/indexed-set.ts';
import type { Failure } from '../failure/failure.ts';
import { resetConnection } from './failure-reply.ts';
import type { ParsedHead } from './head-parser.ts';
import { Intake, type IntakeEvents, type IntakeSettings } from './intake.ts';
import { OutgoingReply, type ReplyConnection } from './reply.ts';
import { type BodySource, IncomingRequest } from './request.ts';
import type { StallWatch } from './slow-readers.ts';

/** The handler of a request, while it answers. */
export interface Answering {
  /** The id in the reply; the server uses it if it must reply itself. */
  readonly requestId: string;
  /** The reply has left, or its connection is gone. */
  closed(): void;
}

/** A request that is being answered. */
export type CurrentRequest = {
  readonly request: IncomingRequest;
  readonly reply: OutgoingReply;
  /** Null until the handler has the request. */
  answering: Answering | null;
};

/** The server of a connection. */
export interface ConnectionEvents {
  /** A request begins on a connection that is not busy. */
  begin(connection: Connection): void;
  /** The reply to the current request has left whole. */
  replied(connection: Connection): void;
  /** The input is refused: the connection ends with this failure, behind the current reply. */
  refuse(connection: Connection, failure: Failure): void;
}

/** The parts that all connections of a server share. */
export type ConnectionContext = IntakeSettings & {
  readonly events: ConnectionEvents;
  /** Header lines of replies behind which the connection stays open. */
  readonly keepAliveLines: string;
};

/** Another worker passes headers on in its own spelling, and adds some. */
const forwardedBytesMore = 1024;

/** One connection. Times are in ticks of its server. */
export class Connection implements Indexed, IntakeEvents, BodySource, ReplyConnection {
  index = -1;
  readonly socket: Socket;
  /** Whether there are too many connections. */
  readonly isBeyondLimit: boolean;
  /** Whether another worker passes its client's request on. */
  readonly isForwarded: boolean;
  readonly intake: Intake;
  readonly openedAt: number;
  /** When it began to wait for what it waits for. */
  since: number;
  /** Whether a reply has left. */
  hasReplied = false;
  current: CurrentRequest | null = null;
  /** Why the input behind the current request is rejected; null: it is not. */
  broken: Failure | null = null;
  /** Null: the reader of the reply has kept up so far. */
  stallWatch: StallWatch | null = null;
  readonly #context: ConnectionContext;
  /** The request whose body is read, or was; its reply may have left. */
  #received: IncomingRequest | null = null;

  constructor(
    socket: Socket,
    isBeyondLimit: boolean,
    isForwarded: boolean,
    openedAt: number,
    context: ConnectionContext,
  ) {
    this.socket = socket;
    this.isBeyondLimit = isBeyondLimit;
    this.isForwarded = isForwarded;
    this.openedAt = openedAt;
    this.since = openedAt;
    this.#context = context;
    this.intake = new Intake(this, isForwarded ? withLongerHeaders(context) : context);
  }

  get keepAliveLines(): string {
    return this.#context.keepAliveLines;
  }

  get isBusy(): boolean {
    return this.current !== null;
  }

  get isAnswered(): boolean {
    return this.current === null || this.current.reply.headersSent;
  }

  /** Whether the head of a reply has left, and its last byte has not been written. */
  get hasBegunReply(): boolean {
    return this.current?.reply.headersSent === true && !this.current.reply.writableEnded;
  }

  /** Whether a request has begun and has not come to its end. */
  get isReceiving(): boolean {
    return this.intake.isInHead || this.#received?.complete === false;
  }

  /** Whether the rest of a request comes behind its reply. */
  get isInAnsweredBody(): boolean {
    return this.current === null && this.#received?.complete === false;
  }

  /** Whether nothing has come since the last reply. */
  get isIdle(): boolean {
    return this.current === null && !this.isReceiving && !this.intake.hasMore;
  }

  begin(head: ParsedHead): IncomingRequest {
    const request = new IncomingRequest(head, this.socket, this);
    this.#received = request.complete ? null : request;
    this.current = { request, reply: new OutgoingReply(request, this), answering: null };
    this.#context.events.begin(this);
    return request;
  }

  refuse(failure: Failure): void {
    this.#context.events.refuse(this, failure);
  }

  replied(): void {
    // An idle connection keeps nothing of its last request.
    if (this.#received?.complete === true) this.#received = null;
    this.#context.events.replied(this);
  }

  bodyIsWanted(): void {
    this.intake.goOn();
  }

  setReading(on: boolean): void {
    if (on !== this.socket.isPaused()) return;
    if (on) this.socket.resume();
    else this.socket.pause();
  }

  /** Ends the connection at once. A reply of which something has left must not look whole. */
  cut(): void {
    const { reply } = this.current ?? {};
    if (reply?.headersSent === true && !reply.writableFinished) resetConnection(this.socket);
    else this.socket.destroy();
  }

  /** The socket is closed, or is not used any more. */
  end(): void {
    this.intake.end();
    this.stallWatch?.stop();
  }
}

function withLongerHeaders(context: ConnectionContext): ConnectionContext {
  return { ...context, maxHeadersBytes: context.maxHeadersBytes + forwardedBytesMore };
}
