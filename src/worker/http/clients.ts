// The clients that are connected now, each with the request that it waits for and the bytes behind it.
// Must not know how requests are answered.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Failure } from '../failure/failure.ts';
import { type Indexed, IndexedSet } from '../indexed-set.ts';
import { type HeldBytes, Intake, type IntakeEvents, mostHeadersBytes } from './intake.ts';
import { type NodeInternals, ReadBuffer, sourceOf, takeParser } from './node-internals.ts';
import type { OutgoingReply } from './reply.ts';

/** A request and its reply. */
export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: OutgoingReply;
  /** Empty until its handler has been given it. */
  requestId: string;
};

/** What all clients of a server share. */
export type ClientContext = {
  readonly held: HeldBytes;
  readonly maxUrlBytes: number;
  /** Answers what came with a failure, in its turn, and closes. */
  readonly refuse: (client: Client, failure: Failure) => void;
  /** It is this client's turn to go on with what it has sent. */
  readonly goOn: (client: Client) => void;
};

/** A worker that passes headers on, which were not too long, writes them in a way of its own and adds some. */
const mostForwardedBytes = mostHeadersBytes + 1024;

/** One connection. */
export class Client implements Indexed, IntakeEvents, TurnTaker {
  index = -1;
  readonly socket: Socket;
  /** The connection is one too many. */
  readonly isBeyondLimit: boolean;
  readonly intake: Intake;
  /** What is being answered now. */
  current: Exchange | null = null;
  /** What came after the current request is not to be read: answered when its turn comes. */
  broken: Failure | null = null;
  readonly #context: ClientContext;
  readonly #parse: (bytes: Buffer) => void;
  #parsed: IncomingMessage | null = null;

  /** Puts itself between the socket and node's parser, which listens to it already. */
  constructor(
    socket: Socket,
    isBeyondLimit: boolean,
    isForwarded: boolean,
    context: ClientContext,
  ) {
    this.socket = socket;
    this.isBeyondLimit = isBeyondLimit;
    this.#context = context;
    const headersBytes = isForwarded ? mostForwardedBytes : mostHeadersBytes;
    this.intake = new Intake(this, context.held, context.maxUrlBytes, headersBytes);
    const parse = takeParser(socket);
    if (parse === null) throw new Error("node's parser does not listen to its socket");
    this.#parse = parse;
  }

  get isBusy(): boolean {
    return this.current !== null;
  }

  get isAnswered(): boolean {
    return this.current === null || this.current.response.headersSent;
  }

  parse(bytes: Buffer): void {
    this.#parse(bytes);
  }

  begin(exchange: Exchange): void {
    this.current = exchange;
    this.#parsed = exchange.request;
  }

  takeRequest(): IncomingMessage | null {
    const request = this.#parsed;
    this.#parsed = null;
    return request;
  }

  refuse(failure: Failure): void {
    this.#context.refuse(this, failure);
  }

  setReading(on: boolean): void {
    if (on !== this.socket.isPaused()) return;
    if (on) this.socket.resume();
    else this.socket.pause();
  }

  takeTurn(): void {
    this.#context.goOn(this);
  }
}

const clientOf: unique symbol = Symbol('client');
type KnownSocket = Socket & { [clientOf]?: Client | undefined };

function takeRead(this: KnownSocket, length: number, bytes: Buffer): true {
  this[clientOf]?.intake.take(bytes.subarray(0, length));
  return true;
}

/** All of them. */
export class Clients implements Iterable<Client> {
  readonly #all = new IndexedSet<Client>();
  readonly #reads: ReadBuffer;
  readonly #context: ClientContext;

  constructor(context: ClientContext, { sharedReads }: NodeInternals) {
    this.#context = context;
    this.#reads = new ReadBuffer(takeRead, sharedReads);
  }

  get size(): number {
    return this.#all.size;
  }

  /**
   * Takes a connection in; it leaves by itself when it is closed.
   * @param isForwarded whether it is another worker's
   */
  open(socket: KnownSocket, isBeyondLimit: boolean, isForwarded: boolean): void {
    const client = new Client(socket, isBeyondLimit, isForwarded, this.#context);
    const source: KnownSocket = sourceOf(socket);
    socket[clientOf] = client;
    source[clientOf] = client;
    this.#reads.read(source);
    this.#all.add(client);
    socket.on('close', () => {
      socket[clientOf] = undefined;
      source[clientOf] = undefined;
      client.intake.end();
      this.#all.delete(client);
    });
  }

  /** Undefined once the connection is closed. */
  of(socket: KnownSocket): Client | undefined {
    return socket[clientOf];
  }

  [Symbol.iterator](): Iterator<Client> {
    return this.#all[Symbol.iterator]();
  }
}

/** Whoever has something to do. */
export interface TurnTaker {
  takeTurn(): void;
}

/** A refusal takes about a tenth of a millisecond. */
const mostPerTurn = 16;

/** First come, first served. */
export class Turns {
  #waiting: TurnTaker[] = [];
  #left = mostPerTurn;
  #isPlanned = false;

  /** Has it take its turn, once: now, or when there is one left. */
  await(taker: TurnTaker): void {
    this.#planNext();
    if (this.#left === 0) {
      this.#waiting.push(taker);
      return;
    }
    this.#left -= 1;
    taker.takeTurn();
  }

  #planNext(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      const now = this.#waiting.slice(0, mostPerTurn);
      this.#waiting = this.#waiting.slice(mostPerTurn);
      this.#left = mostPerTurn - now.length;
      if (now.length > 0) this.#planNext();
      for (const taker of now) taker.takeTurn();
    });
  }
}
