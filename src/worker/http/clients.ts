// The connected clients, each with its current request and the input behind it.
import type { Socket } from 'node:net';
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import type { Failure } from '../failure/failure.ts';
import type { HeadForm } from './head-form.ts';
import { type BufferedInput, Intake, type IntakeEvents, maxHeadersBytes } from './intake.ts';
import { type NodeInternals, ReadBuffer, sourceOf, takeParser } from './node-internals.ts';
import type { OutgoingReply } from './reply.ts';
import type { IncomingRequest } from './request.ts';

/** A request that is being answered. */
export type CurrentRequest = {
  readonly request: IncomingRequest;
  readonly reply: OutgoingReply;
  /** Empty until the handler has the request. */
  requestId: string;
};

/** The parts that all clients of a server share. */
export type ClientContext = {
  readonly buffered: BufferedInput;
  readonly maxUrlBytes: number;
  readonly heads: HeadForm;
  /** Answers with a failure behind the current reply, and closes. */
  readonly refuse: (client: Client, failure: Failure) => void;
};

/** Another worker passes headers on in its own spelling, and adds some. */
const maxForwardedBytes = maxHeadersBytes + 1024;

/** One connection. */
export class Client implements Indexed, IntakeEvents {
  index = -1;
  readonly socket: Socket;
  /** Whether there are too many connections. */
  readonly isBeyondLimit: boolean;
  readonly intake: Intake;
  current: CurrentRequest | null = null;
  /** Why the input behind the current request is rejected; null: it is not. */
  broken: Failure | null = null;
  readonly #context: ClientContext;
  readonly #parse: (bytes: Buffer) => void;
  #parsed: IncomingRequest | null = null;

  /** Gets between the socket and node's parser, which listens to the socket already. */
  constructor(
    socket: Socket,
    isBeyondLimit: boolean,
    isForwarded: boolean,
    context: ClientContext,
  ) {
    this.socket = socket;
    this.isBeyondLimit = isBeyondLimit;
    this.#context = context;
    const headersBytes = isForwarded ? maxForwardedBytes : maxHeadersBytes;
    const { buffered, maxUrlBytes, heads } = context;
    this.intake = new Intake(this, buffered, maxUrlBytes, headersBytes, heads);
    const parse = takeParser(socket);
    if (parse === null) throw new Error("node's parser does not listen to its socket");
    this.#parse = parse;
  }

  get isBusy(): boolean {
    return this.current !== null;
  }

  get isAnswered(): boolean {
    return this.current === null || this.current.reply.headersSent;
  }

  parse(bytes: Buffer): void {
    this.#parse(bytes);
  }

  begin(current: CurrentRequest): void {
    this.current = current;
    this.#parsed = current.request;
  }

  takeRequest(): IncomingRequest | null {
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
}

const clientOf: unique symbol = Symbol('client');
type KnownSocket = Socket & { [clientOf]?: Client | undefined };

function takeRead(this: KnownSocket, length: number, bytes: Buffer): true {
  this[clientOf]?.intake.take(bytes.subarray(0, length));
  return true;
}

/** The clients of one server. */
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
   * Adds a connection, which is removed when it closes.
   * @param isForwarded whether it comes from another worker
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

/** A rejection takes about a tenth of a millisecond. */
const maxPerTurn = 16;

/** Limits how many tasks of one kind run in each turn of the event loop, so that others get their turn. First come, first served. */
export class LoopBudget<Task> {
  readonly #run: (task: Task) => void;
  #waiting: Task[] = [];
  #left = maxPerTurn;
  #isPlanned = false;

  constructor(run: (task: Task) => void) {
    this.#run = run;
  }

  /** Runs a task once: now, or in the next turn that has room. */
  spend(task: Task): void {
    this.#planNext();
    if (this.#left === 0) {
      this.#waiting.push(task);
      return;
    }
    this.#left -= 1;
    this.#run(task);
  }

  #planNext(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      const now = this.#waiting.slice(0, maxPerTurn);
      this.#waiting = this.#waiting.slice(maxPerTurn);
      this.#left = maxPerTurn - now.length;
      if (now.length > 0) this.#planNext();
      for (const task of now) this.#run(task);
    });
  }
}
