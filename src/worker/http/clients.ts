// The clients that are connected now, each with the request that it waits for and those behind it.
// Must not know how requests are answered.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Enrolled, Roster } from '../../shared/roster.ts';
import type { Failure } from './failure.ts';
import type { OutgoingReply } from './outgoing-reply.ts';

const mostWaitingPipelined = 16;
/** URLs that wait behind a request hold memory: with this much of it the socket is paused too. */
const mostWaitingBytes = 64 * 1024;

/** A request and its reply. */
export type Exchange = { readonly request: IncomingMessage; readonly response: OutgoingReply };

/** One connection. */
export class Client implements Enrolled {
  place = -1;
  /** What is being answered now. */
  current: Exchange | null = null;
  /** The bytes that came after the current request were no HTTP: answered when its turn comes. */
  broken: Failure | null = null;
  /** The connection is one too many. */
  readonly isBeyondLimit: boolean;
  readonly #waiting: Exchange[] = [];
  #waitingBytes = 0;

  constructor(isBeyondLimit: boolean) {
    this.isBeyondLimit = isBeyondLimit;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether no more is to be read from it for now. */
  get isFull(): boolean {
    return this.#waiting.length >= mostWaitingPipelined || this.#waitingBytes > mostWaitingBytes;
  }

  /** Has a request wait behind the current one. */
  push(exchange: Exchange): void {
    this.#waiting.push(exchange);
    this.#waitingBytes += exchange.request.url?.length ?? 0;
  }

  shift(): Exchange | undefined {
    const next = this.#waiting.shift();
    this.#waitingBytes -= next?.request.url?.length ?? 0;
    return next;
  }
}

const clientOf: unique symbol = Symbol('client');
type KnownSocket = Socket & { [clientOf]?: Client | undefined };

/** All of them. */
export class Clients implements Iterable<Client> {
  readonly #roster = new Roster<Client>();

  get size(): number {
    return this.#roster.size;
  }

  /** Takes a connection in; it leaves by itself when it is closed. */
  open(socket: KnownSocket, isBeyondLimit: boolean): void {
    const client = new Client(isBeyondLimit);
    socket[clientOf] = client;
    this.#roster.add(client);
    socket.on('close', () => {
      socket[clientOf] = undefined;
      this.#roster.delete(client);
    });
  }

  /** Undefined once the connection is closed. */
  of(socket: KnownSocket): Client | undefined {
    return socket[clientOf];
  }

  [Symbol.iterator](): Iterator<Client> {
    return this.#roster[Symbol.iterator]();
  }
}
