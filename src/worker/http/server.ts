// The HTTP server: connections within their limits, requests one at a time on each, hostile input, slow readers, and the stop.
import { createServer, type Server, type Socket } from 'node:net';
import { type Failure, refusal } from '../failure/failure.ts';
import { whenBacklogIsEmpty } from './backlog.ts';
import { BufferedInput } from './buffered-input.ts';
import type { Answering, Connection } from './connection.ts';
import { Connections } from './connections.ts';
import { endSocket, endWithFailure, resetConnection, sendFailure } from './failure-reply.ts';
import { Handshakes } from './handshakes.ts';
import type { HeadForm } from './head-form.ts';
import { maxHeadersBytes } from './head-parser.ts';
import type { ClientTimeouts, ConnectionLimit } from './limits.ts';
import { LoopBudget } from './loop-budget.ts';
import { errorForMysqlClient } from './mysql-client.ts';
import type { Peers } from './peers.ts';
import type { OutgoingReply } from './reply.ts';
import type { IncomingRequest } from './request.ts';
import { StallWatch } from './slow-readers.ts';
import { createSecureServer, type KeyPair } from './tls.ts';

/** The limits of a server, and whether it speaks TLS. */
export type HttpSettings = {
  readonly maxUrlBytes: number;
  readonly heads: HeadForm;
  /** Bytes of requests that have not been read to their end, of all clients together. */
  readonly maxBufferedBytes: number;
  readonly keepaliveTimeoutMs: number;
  readonly connections: ConnectionLimit;
  readonly timeouts: ClientTimeouts;
  /** For all sockets of the worker. */
  readonly peers: Peers;
  /** Null serves plain HTTP. */
  readonly tls: KeyPair | null;
};

/**
 * Handles one request; the next one on the same connection comes after its reply.
 * @param isBeyondLimit there are too many connections: only health and metrics are to be answered on this one
 */
export type RequestHandler = (
  request: IncomingRequest,
  reply: OutgoingReply,
  isBeyondLimit: boolean,
) => Answering;

/** How the server answers input that is not a request. */
export type Refusals = {
  readonly nextRequestId: () => string;
  /** Additional headers: name, value, name, value. */
  readonly headers: readonly string[];
  /** Called for each; `bytes` counts the body of the reply. */
  readonly observe: (address: string, failure: Failure, bytes: number, requestId: string) => void;
};

const unobserved: Refusals = { nextRequestId: () => '-', headers: [], observe: () => {} };

const tooLate = refusal(
  'REQUEST_TIMEOUT',
  'The request did not arrive in time: 20 s for its headers, 60 s for all of it.',
);
const endedEarly = refusal('BAD_REQUEST', 'The request is not well-formed HTTP.');

/**
 * How far the stop is, which only goes forward. closing: connections that the kernel holds are accepted, and nothing is read from them
 * meanwhile, so that the backlog becomes empty. draining: nothing is accepted, and each connection ends with its next reply.
 */
type Phase = 'serving' | 'closing' | 'draining';

/** The time limits, in ticks. */
type Ticks = Readonly<Record<'headers' | 'request' | 'keepalive' | 'beyondLimit', number>>;

/** A server, which does not listen before its `server` does. */
export class HttpServer {
  readonly server: Server;
  readonly #settings: HttpSettings;
  readonly #handle: RequestHandler;
  readonly #refusals: Refusals;
  readonly #connections: Connections;
  readonly #buffered: BufferedInput;
  readonly #ticks: Ticks;
  readonly #handshakes = new Handshakes();
  readonly #budget = new LoopBudget((connection: Connection) => this.#goOn(connection));
  #phase: Phase = 'serving';
  #inFlight = 0;
  #refused = 0;

  constructor(settings: HttpSettings, handle: RequestHandler, refusals: Refusals = unobserved) {
    this.#settings = settings;
    this.#handle = handle;
    this.#refusals = refusals;
    this.#buffered = new BufferedInput(settings.maxBufferedBytes);
    this.#ticks = ticksOf(settings);
    this.#connections = new Connections(
      {
        buffered: this.#buffered,
        maxUrlBytes: settings.maxUrlBytes,
        maxHeadersBytes,
        heads: settings.heads,
        keepAliveLines: keepAliveLines(settings.keepaliveTimeoutMs),
        events: {
          begin: (connection) => this.#begin(connection),
          replied: (connection) => this.#replied(connection),
          refuse: (connection, failure) => this.#refuseInTurn(connection, failure),
        },
      },
      {
        inputEnded: (connection) => this.#inputEnded(connection),
        closed: (connection) => this.#closed(connection),
        tick: (connection, now) => this.#checkTime(connection, now),
      },
      settings.timeouts.checkMs,
    );
    this.server = this.#createServer();
  }

  /** How many requests are in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** How many clients are connected, and how many were refused so far because there were too many. */
  get connections(): { readonly open: number; readonly refused: number } {
    return { open: this.#clients, refused: this.#refused };
  }

  get #clients(): number {
    return this.#connections.clients + this.#handshakes.count;
  }

  /** Bytes of requests that have not been read to their end, of all clients together. */
  get bufferedBytes(): number {
    return this.#buffered.total;
  }

  /** Serves a connection from another worker, which counts and limits its requests itself. */
  takeForwarded(socket: Socket): void {
    this.#connections.open(socket, false, true);
  }

  /** Ends all connections at once. */
  destroyConnections(): void {
    for (const connection of this.#connections) connection.cut();
    for (const socket of this.#handshakes.sockets) socket.destroy();
  }

  // Connections

  #createServer(): Server {
    const { connections, timeouts, tls } = this.#settings;
    const server =
      tls === null
        ? createServer({ allowHalfOpen: true, noDelay: true })
        : createSecureServer(tls, timeouts.headersMs, this.#handshakes);
    // Beyond the reserve the socket is closed as it is accepted: there is no descriptor to spare for a reply.
    server.maxConnections = connections.served + connections.reserved;
    server.on('drop', () => {
      this.#refused += 1;
    });
    if (tls !== null) server.on('connection', (socket: Socket) => this.#boundHandshake(socket));
    server.on(tls === null ? 'connection' : 'secureConnection', (socket) => this.#open(socket));
    return server;
  }

  /** Beyond the limit a handshake may take as long as a request: the reserve is for health checks. */
  #boundHandshake(socket: Socket): void {
    const { connections, timeouts } = this.#settings;
    if (this.#clients <= connections.served) return;
    const timer = setTimeout(() => {
      if (!this.#handshakes.includes(socket)) return;
      this.#refused += 1;
      socket.destroy();
    }, timeouts.beyondLimitMs);
    socket.once('close', () => clearTimeout(timer));
  }

  #open(socket: Socket): void {
    const isBeyondLimit = this.#clients >= this.#settings.connections.served;
    this.#connections.open(socket, isBeyondLimit, false);
    if (this.#phase === 'closing') socket.pause();
    if (isBeyondLimit) this.#refused += 1;
  }

  /** The client has ended its side. It is taken to be gone: a reply that is written in full still leaves. */
  #inputEnded(connection: Connection): void {
    if (connection.isReceiving) this.#refuseInTurn(connection, endedEarly);
    else if (connection.hasBegunReply) connection.cut();
    else connection.socket.end();
  }

  #closed(connection: Connection): void {
    if (connection.current !== null) this.#endCurrent(connection);
  }

  // Time

  #checkTime(connection: Connection, now: number): void {
    const { socket, isBeyondLimit, current } = connection;
    const { headers, request, keepalive, beyondLimit } = this.#ticks;
    const waited = now - connection.since;
    if (isBeyondLimit && now - connection.openedAt > beyondLimit) socket.destroy();
    else if (connection.isReceiving) {
      const limit = connection.intake.isInHead ? headers : request;
      if (waited > limit) this.#tookTooLong(connection);
    } else if (current !== null) this.#watchReader(connection);
    else if (connection.hasReplied) {
      if (waited > keepalive) socket.destroy();
    } else if (waited > headers) this.#tookTooLong(connection);
  }

  #tookTooLong(connection: Connection): void {
    const { socket, intake } = connection;
    intake.end();
    if (!socket.writable) socket.destroy();
    else if (socket.bytesRead === 0 && this.#settings.tls === null) {
      this.#refuseMysqlClient(connection);
    } else this.#refuseInTurn(connection, tooLate);
  }

  /** Watches the reader of a reply that is written in full. Until then, the part of the code that writes it does. */
  #watchReader(connection: Connection): void {
    const { socket, current, isForwarded, stallWatch } = connection;
    if (current?.reply.writableEnded !== true || isForwarded || stallWatch !== null) return;
    const watch = new StallWatch(this.#settings.peers.of(socket), () => resetConnection(socket));
    connection.stallWatch = watch;
    watch.start();
  }

  // Requests

  #begin(connection: Connection): void {
    const { current, isBeyondLimit } = connection;
    if (current === null) return;
    const { request, reply } = current;
    this.#inFlight += reply.isForwarded ? 0 : 1;
    const isLast = this.#phase !== 'serving' && !connection.intake.hasWhole;
    if (isLast || isBeyondLimit) reply.shouldKeepAlive = false;
    current.answering = this.#handle(request, reply, isBeyondLimit);
  }

  #replied(connection: Connection): void {
    const { current, socket } = connection;
    if (current === null) return;
    connection.hasReplied = true;
    connection.since = this.#connections.now;
    this.#endCurrent(connection);
    const { request, reply } = current;
    if (reply.shouldKeepAlive && socket.writable) {
      if (!request.complete) request.drop();
      this.#advance(connection);
    } else this.#close(connection, !request.complete || connection.intake.hasMore);
  }

  /**
   * Closes the connection behind a reply. Nothing behind it is parsed: an answer could not be sent.
   * @param isSending whether the client may still send: closed at once, it could lose the reply (RFC 9112 section 9.6)
   */
  #close({ socket, intake }: Connection, isSending: boolean): void {
    intake.end();
    if (isSending) endSocket(socket, '');
    else if (this.#settings.tls === null) socket.destroy();
    else socket.destroySoon();
  }

  /** The reply has left, or the connection is gone. */
  #endCurrent(connection: Connection): void {
    const { current } = connection;
    if (current === null) return;
    const { reply, answering } = current;
    connection.current = null;
    connection.stallWatch?.stop();
    connection.stallWatch = null;
    this.#inFlight -= reply.isForwarded ? 0 : 1;
    // First, so that what this ends is reported once, with its request.
    reply.close();
    answering?.closed();
  }

  /** Goes on behind a reply, within the budget of the event loop: otherwise rejections could follow each other without end. */
  #advance(connection: Connection): void {
    if (connection.broken !== null) this.#refuse(connection, connection.broken);
    else if (connection.intake.hasMore) this.#budget.spend(connection);
  }

  #goOn({ socket, intake, isBusy }: Connection): void {
    if (!socket.writable) intake.end();
    else if (!isBusy) intake.goOn();
  }

  // Input that is not a request

  /** A client that has waited for this long without a byte may be one of MySQL's. */
  #refuseMysqlClient({ socket }: Connection): void {
    const { nextRequestId, observe } = this.#refusals;
    const message = "The client sent nothing. It got an error packet of MySQL's protocol.";
    observe(socket.remoteAddress ?? '', { ...tooLate, message }, 0, nextRequestId());
    endSocket(socket, errorForMysqlClient);
  }

  /** Answers with a failure behind the current reply, or in its place if the current request is not whole. */
  #refuseInTurn(connection: Connection, failure: Failure): void {
    const { current, socket } = connection;
    if (current?.request.complete === true) connection.broken = failure;
    else if (current?.reply.headersSent === true) endEarly(current.reply);
    else if (!socket.writable) return;
    // A second reply would be taken for that to the next request.
    else if (connection.isInAnsweredBody) endSocket(socket, '');
    else if (current === null) this.#refuse(connection, failure);
    else {
      // The handler waits for the rest of the body, which is no longer parsed.
      current.reply.shouldKeepAlive = false;
      sendFailure(current.reply, failure, current.answering?.requestId ?? '-');
    }
  }

  #refuse({ socket, intake }: Connection, failure: Failure): void {
    const { nextRequestId, headers, observe } = this.#refusals;
    const client = socket.remoteAddress ?? '';
    const requestId = nextRequestId();
    const bytes = endWithFailure(socket, failure, requestId, headers, !intake.asksHead);
    observe(client, failure, bytes, requestId);
  }

  // The stop

  /**
   * Closes the listener once the kernel holds no connection that was not accepted, or at once if another process has the socket too
   * (`socketStays`), and then calls `onClosed`. Idle connections get `idleGraceMs` more. Resolves when the last connection is gone.
   */
  drain(idleGraceMs: number, socketStays: boolean, onClosed: () => void): Promise<void> {
    const { server } = this;
    this.#phase = 'closing';
    for (const { current, intake, socket } of this.#connections) {
      if (current === null) socket.pause();
      // From a head that has left, the client knows that it may send another request.
      else if (!current.reply.headersSent && !intake.hasWhole) {
        current.reply.shouldKeepAlive = false;
      }
    }
    // Those that wait for a first request have not been idle until now.
    const idle = new WeakSet<object>(
      [...this.#connections].filter(({ isIdle, hasReplied }) => isIdle && hasReplied),
    );
    // Repeated: what looked like another request may have been a part of a body.
    const grace = setInterval(() => {
      // Sockets are read between the timer and this call: a request that has come by now is answered.
      setImmediate(() => this.#closeIdle(idle));
    }, idleGraceMs);
    return new Promise((resolve) => {
      const close = () => {
        server.close(() => {
          clearInterval(grace);
          resolve();
        });
        this.#phase = 'draining';
        for (const { isBusy, socket } of this.#connections) if (!isBusy) socket.resume();
        onClosed();
      };
      if (socketStays) close();
      else whenBacklogIsEmpty(server, close);
    });
  }

  /** Closes connections that were idle before and are idle now. @param idle those that were */
  #closeIdle(idle: WeakSet<object>): void {
    if (this.#phase !== 'draining') return;
    for (const connection of this.#connections) {
      if (!connection.isIdle) idle.delete(connection);
      else if (idle.has(connection)) connection.socket.destroy();
      else idle.add(connection);
    }
    for (const socket of this.#handshakes.sockets) {
      if (idle.has(socket)) socket.destroy();
      else idle.add(socket);
    }
  }
}

/** The rest of its request is malformed, or does not come. */
function endEarly(reply: OutgoingReply): void {
  reply.shouldKeepAlive = false;
  reply.end();
}

function ticksOf({ timeouts, keepaliveTimeoutMs }: HttpSettings): Ticks {
  const { checkMs, headersMs, requestMs, beyondLimitMs } = timeouts;
  const ticks = (ms: number) => Math.ceil(ms / checkMs);
  return {
    headers: ticks(headersMs),
    request: ticks(requestMs),
    keepalive: ticks(keepaliveTimeoutMs),
    beyondLimit: ticks(beyondLimitMs),
  };
}

function keepAliveLines(timeoutMs: number): string {
  return `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(timeoutMs / 1000)}\r\n`;
}
