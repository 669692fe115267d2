// The connections of one server, and one timer for all of their time limits.
import type { Socket } from 'node:net';
import { IndexedSet } from '../../shared/indexed-set.ts';
import { Connection, type ConnectionContext } from './connection.ts';

const connectionOf: unique symbol = Symbol('connection');
type KnownSocket = Socket & { [connectionOf]?: Connection | undefined };

/** The server of the connections. */
export interface SocketEvents {
  /** The client has ended its side: nothing more will come. */
  inputEnded(connection: Connection): void;
  /** The connection is gone. */
  closed(connection: Connection): void;
  /** Called for each connection in turn, once in each tick. */
  tick(connection: Connection, now: number): void;
}

/** All sockets have these listeners: one for each would outlive the collections of young garbage. */
type Listeners = {
  readonly data: (this: KnownSocket, bytes: Buffer) => void;
  readonly end: (this: KnownSocket) => void;
  readonly close: (this: KnownSocket) => void;
  readonly error: (this: KnownSocket) => void;
};

/** The connections of one server. */
export class Connections implements Iterable<Connection> {
  readonly #all = new IndexedSet<Connection>();
  readonly #context: ConnectionContext;
  readonly #events: SocketEvents;
  readonly #tickMs: number;
  readonly #listeners: Listeners;
  #timer: NodeJS.Timeout | null = null;
  /** How many ticks there were: the clock of all limits. */
  #now = 0;
  #forwardedCount = 0;

  /** @param tickMs how often limits are checked: a limit ends up to this much later */
  constructor(context: ConnectionContext, events: SocketEvents, tickMs: number) {
    this.#context = context;
    this.#events = events;
    this.#tickMs = tickMs;
    this.#listeners = this.#createListeners();
  }

  /** How many clients are connected. Connections of other workers do not count. */
  get clients(): number {
    return this.#all.size - this.#forwardedCount;
  }

  get now(): number {
    return this.#now;
  }

  /** Adds a connection, which is removed when it closes. @param isForwarded whether it comes from another worker */
  open(socket: KnownSocket, isBeyondLimit: boolean, isForwarded: boolean): void {
    const connection = new Connection(socket, isBeyondLimit, isForwarded, this.#now, this.#context);
    socket[connectionOf] = connection;
    this.#all.add(connection);
    if (isForwarded) this.#forwardedCount += 1;
    this.#timer ??= setInterval(() => this.#tick(), this.#tickMs).unref();
    const { data, end, close, error } = this.#listeners;
    socket.on('data', data).on('end', end).on('close', close).on('error', error);
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#all[Symbol.iterator]();
  }

  #createListeners(): Listeners {
    const events = this.#events;
    const forget = (connection: Connection) => this.#forget(connection);
    const now = () => this.#now;
    return {
      data(bytes) {
        const connection = this[connectionOf];
        if (connection === undefined) return;
        // The time for the first request runs from the connection.
        if (connection.hasReplied && connection.isIdle) connection.since = now();
        connection.intake.take(bytes);
      },
      end() {
        if (this[connectionOf] !== undefined) events.inputEnded(this[connectionOf]);
      },
      close() {
        const connection = this[connectionOf];
        if (connection === undefined) return;
        this[connectionOf] = undefined;
        forget(connection);
        connection.end();
        events.closed(connection);
      },
      error() {
        this.destroy();
      },
    };
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    if (connection.isForwarded) this.#forwardedCount -= 1;
    if (this.#all.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #tick(): void {
    this.#now += 1;
    for (const connection of this.#all) this.#events.tick(connection, this.#now);
  }
}
