// The HTTP server: connections within their limits, requests one at a time on each, hostile input, slow readers, and the stop.
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import type { Failure } from '../failure/failure.ts';
import { whenBacklogIsEmpty } from './backlog.ts';
import { type Client, Clients, type CurrentRequest, LoopBudget } from './clients.ts';
import type { HeadForm } from './head-form.ts';
import { BufferedInput, maxHeadersBytes } from './intake.ts';
import type { ClientTimeouts, ConnectionLimit } from './limits.ts';
import { errorForMysqlClient } from './mysql-client.ts';
import {
  createServer,
  keepFromParser,
  type NodeInternals,
  relayConnections,
  sourceOf,
} from './node-internals.ts';
import { NodeReply } from './node-reply.ts';
import type { Peers } from './peers.ts';
import {
  endSocket,
  endWithFailure,
  type OutgoingReply,
  resetConnection,
  sendFailure,
  syntaxFailure,
} from './reply.ts';
import type { ExpectHeader, IncomingRequest } from './request.ts';
import { StallWatch } from './slow-readers.ts';
import { type KeyPair, secureOptions } from './tls.ts';

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

/** A request that its handler answers. */
export interface Answering {
  /** The id in the reply; the server uses it if it must reply itself. */
  readonly requestId: string;
  /** The reply has left, or its connection is gone. */
  closed(): void;
}

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

/**
 * How far the stop is, which only goes forward. closing: connections that the kernel holds are accepted, and nothing is read from them
 * meanwhile, so that the backlog becomes empty. draining: nothing is accepted, and each connection ends with its next reply.
 */
type Phase = 'serving' | 'closing' | 'draining';

/** A server, which does not listen before its `server` does. */
export class HttpServer {
  readonly server: Server;
  readonly #settings: HttpSettings;
  readonly #handle: RequestHandler;
  readonly #internals: NodeInternals;
  readonly #refusals: Refusals;
  readonly #clients: Clients;
  readonly #buffered: BufferedInput;
  readonly #budget = new LoopBudget((client: Client) => this.#goOn(client));
  /** Connections of other workers, which count as no clients. */
  readonly #forwarded = new Set<Socket>();
  /** Replies that are written in full, and whose readers are watched. */
  readonly #watched = new WeakSet<OutgoingReply>();
  /** The event with which a socket comes that speaks HTTP: over TLS it is not the accepted one. */
  readonly #connected: 'connection' | 'secureConnection';
  #phase: Phase = 'serving';
  #inFlight = 0;
  #refused = 0;

  constructor(
    settings: HttpSettings,
    handle: RequestHandler,
    internals: NodeInternals,
    refusals: Refusals = unobserved,
  ) {
    this.#settings = settings;
    this.#handle = handle;
    this.#internals = internals;
    this.#refusals = refusals;
    this.#buffered = new BufferedInput(settings.maxBufferedBytes);
    this.#clients = new Clients(
      {
        buffered: this.#buffered,
        maxUrlBytes: settings.maxUrlBytes,
        heads: settings.heads,
        refuse: (client, failure) => this.#refuseInTurn(client, failure),
      },
      internals,
    );
    this.server = createNodeServer(settings);
    this.#connected = settings.tls === null ? 'connection' : 'secureConnection';
    this.#acceptConnections();
    this.#acceptRequests();
  }

  /** How many requests are in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** How many clients are connected, and how many were refused so far because there were too many. */
  get connections(): { readonly open: number; readonly refused: number } {
    return { open: this.#clients.size - this.#forwarded.size, refused: this.#refused };
  }

  /** Bytes of requests that have not been read to their end, of all clients together. */
  get bufferedBytes(): number {
    return this.#buffered.total;
  }

  /** Serves a connection from another worker, which counts and limits its requests itself. */
  takeForwarded(socket: Socket): void {
    this.#forwarded.add(socket);
    socket.once('close', () => this.#forwarded.delete(socket));
    this.server.emit(this.#connected, socket);
  }

  /** Ends all connections at once. */
  destroyConnections(): void {
    this.server.closeAllConnections();
  }

  // Connections

  #acceptConnections(): void {
    const { server } = this;
    const { connections, timeouts } = this.#settings;
    server.timeout = timeouts.stallMs;
    // Beyond the reserve the socket is closed as it is accepted: there is no descriptor to spare for a reply.
    server.maxConnections = connections.served + connections.reserved;
    server.on('drop', () => {
      this.#refused += 1;
    });
    if (!this.#internals.takenParser) relayConnections(server, this.#connected);
    if (this.#internals.sharedReads) server.prependListener(this.#connected, keepFromParser);
    server.on(this.#connected, (socket: Socket) => this.#open(socket));
    server.on('timeout', (socket: Socket) => this.#timedOut(socket));
  }

  #open(socket: Socket): void {
    const { connections, timeouts } = this.#settings;
    const isForwarded = this.#forwarded.has(sourceOf(socket));
    const isBeyondLimit =
      !isForwarded && this.#clients.size - this.#forwarded.size >= connections.served;
    this.#clients.open(socket, isBeyondLimit, isForwarded);
    // Node has the socket begin to read in a tick that comes before this one.
    if (this.#phase === 'closing') {
      process.nextTick(() => this.#phase === 'closing' && socket.pause());
    }
    if (!isBeyondLimit) return;
    this.#refused += 1;
    const timer = setTimeout(() => socket.destroy(), timeouts.beyondLimitMs).unref();
    socket.once('close', () => clearTimeout(timer));
  }

  /** Nothing has come or left for `stallMs`: the connection is idle, or its client takes the reply slowly or not at all. */
  #timedOut(socket: Socket): void {
    const current = this.#clients.of(socket)?.current ?? null;
    if (current === null) socket.destroy();
    else if (current.reply.writableEnded && !current.reply.isForwarded) {
      this.#resetIfStalled(socket, current.reply);
    }
  }

  /** Watches the reader of a reply that is written in full. Until then, the part of the code that writes it does. */
  #resetIfStalled(socket: Socket, reply: OutgoingReply): void {
    if (this.#watched.has(reply)) return;
    this.#watched.add(reply);
    const peer = this.#settings.peers.of(sourceOf(socket));
    const watch = new StallWatch(peer, () => resetConnection(socket));
    watch.start();
    reply.once('close', () => watch.stop());
  }

  // Requests

  #acceptRequests(): void {
    const { server } = this;
    // Node would answer an expectation before the rest of the head is checked.
    server.on('request', (request, reply) => this.#receive(request, reply, 'none'));
    server.on('checkContinue', (request, reply) => this.#receive(request, reply, '100-continue'));
    server.on('checkExpectation', (request, reply) => this.#receive(request, reply, 'unknown'));
    server.on('clientError', (error, socket) => this.#failedToParse(error, socket as Socket));
  }

  #receive(request: IncomingMessage, response: ServerResponse, expectation: ExpectHeader): void {
    const client = this.#clients.of(request.socket);
    // Node's parser may still have bytes of a connection that has ended.
    if (client === undefined || client.isBusy || !request.socket.writable) return;
    const reply = response as NodeReply;
    reply.expectation = expectation;
    reply.isSentAtOnce = this.#internals.repliesAtOnce;
    reply.isForwarded = this.#forwarded.has(sourceOf(request.socket));
    this.#begin(client, { request, reply, requestId: '' });
  }

  #begin(client: Client, current: CurrentRequest): void {
    const { request, reply } = current;
    client.begin(current);
    const counted = reply.isForwarded ? 0 : 1;
    this.#inFlight += counted;
    const isLast = this.#phase !== 'serving' && !client.intake.hasWhole;
    if (isLast || client.isBeyondLimit || isOfAnotherProtocol(request)) {
      reply.shouldKeepAlive = false;
    }
    const answering = this.#handle(request, reply, client.isBeyondLimit);
    current.requestId = answering.requestId;
    // The only listener of a reply: every request pays for each further one.
    reply.on('close', () => {
      this.#inFlight -= counted;
      client.current = null;
      // First, so that what this ends is reported once, with its request.
      reply.attended?.closed();
      answering.closed();
      this.#advance(client);
    });
  }

  /** Goes on behind a reply, within the budget of the event loop: otherwise rejections could follow each other without end. */
  #advance(client: Client): void {
    // After a reply that closes the connection nothing behind it is parsed: an answer could not be sent.
    if (!client.socket.writable) client.intake.end();
    else if (client.broken !== null) this.#refuse(client, client.broken);
    else if (client.intake.hasMore) this.#budget.spend(client);
  }

  #goOn(client: Client): void {
    if (!client.socket.writable) client.intake.end();
    else if (!client.isBusy) client.intake.goOn();
  }

  // Input that is not a request

  #failedToParse(error: NodeJS.ErrnoException, socket: Socket): void {
    const client = this.#clients.of(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || client === undefined) {
      socket.destroy();
      return;
    }
    client.intake.end();
    const failure = syntaxFailure(error);
    const isSilent = failure.code === 'REQUEST_TIMEOUT' && socket.bytesRead === 0;
    if (isSilent && this.#settings.tls === null) this.#refuseMysqlClient(socket, failure);
    else this.#refuseInTurn(client, failure);
  }

  /** A client that has waited for this long without a byte may be one of MySQL's. */
  #refuseMysqlClient(socket: Socket, failure: Failure): void {
    const { nextRequestId, observe } = this.#refusals;
    const message = "The client sent nothing. It got an error packet of MySQL's protocol.";
    observe(socket.remoteAddress ?? '', { ...failure, message }, 0, nextRequestId());
    endSocket(socket, errorForMysqlClient);
  }

  /** Answers with a failure behind the current reply, or in its place if the current request is not whole. */
  #refuseInTurn(client: Client, failure: Failure): void {
    const { current, socket } = client;
    if (current?.request.complete === true) client.broken = failure;
    else if (current?.reply.headersSent === true) current.reply.end();
    else if (!socket.writable) return;
    else if (current === null) this.#refuse(client, failure);
    else {
      // The handler waits for the rest of the body, which is no longer parsed.
      current.reply.shouldKeepAlive = false;
      sendFailure(current.reply, failure, current.requestId);
    }
  }

  #refuse({ socket, intake }: Client, failure: Failure): void {
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
    for (const { current, intake, socket } of this.#clients) {
      if (current === null) socket.pause();
      else if (!intake.hasWhole) current.reply.shouldKeepAlive = false;
    }
    const unused = new WeakSet<Socket>();
    // Repeated: what looked like another request may have been a part of a body.
    const grace = setInterval(() => {
      server.closeIdleConnections();
      // Sockets are read between the timer and this call: a request that has come by now is answered.
      setImmediate(() => this.#closeUnusedConnections(unused));
    }, idleGraceMs);
    return new Promise((resolve) => {
      const close = () => {
        // Not http's own close, which ends idle connections at once.
        NetServer.prototype.close.call(server, () => {
          clearInterval(grace);
          resolve();
        });
        this.#phase = 'draining';
        for (const { isBusy, socket } of this.#clients) if (!isBusy) socket.resume();
        onClosed();
      };
      if (socketStays) close();
      else whenBacklogIsEmpty(server, close);
    });
  }

  /** Closes connections that have sent nothing since the last call. For node they have begun a request, and have 20 s for its headers. */
  #closeUnusedConnections(unused: WeakSet<Socket>): void {
    if (this.#phase !== 'draining') return;
    for (const { socket } of this.#clients) {
      if (socket.bytesRead > 0) continue;
      if (unused.has(socket)) socket.destroy();
      unused.add(socket);
    }
  }
}

function createNodeServer(settings: HttpSettings): Server {
  const options: ServerOptions = {
    maxHeaderSize: settings.maxUrlBytes + maxHeadersBytes,
    keepAliveTimeout: settings.keepaliveTimeoutMs,
    headersTimeout: settings.timeouts.headersMs,
    requestTimeout: settings.timeouts.requestMs,
    connectionsCheckingInterval: settings.timeouts.checkMs,
    requireHostHeader: false,
    noDelay: true,
    ServerResponse: NodeReply as typeof ServerResponse,
  };
  const { tls, timeouts } = settings;
  const server =
    tls === null
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...secureOptions(tls),
          handshakeTimeout: timeouts.headersMs,
        });
  // Node would silently drop headers beyond its limit. The length of a head was checked before, and their number is checked later.
  server.maxHeadersCount = 0;
  return server;
}

/**
 * Whether what follows the head may be of another protocol, or a proxy may take it for that. The connection then ends with the reply
 * (RFC 9110 section 7.8, RFC 9112 section 6.1).
 */
function isOfAnotherProtocol({ headers, httpVersion }: IncomingRequest): boolean {
  if (headers.upgrade !== undefined) return true;
  return httpVersion === '1.0' && headers['transfer-encoding'] !== undefined;
}
