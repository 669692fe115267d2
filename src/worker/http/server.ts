// The HTTP server: limits, hostile syntax, pipelined requests in order, draining.
// Must not know routes: it hands each request to one handler, one at a time for each connection.
import type { IncomingMessage, Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Failure } from '../failure/failure.ts';
import { whenBacklogIsEmpty } from './backlog.ts';
import { type Client, Clients, type Exchange, Turns } from './clients.ts';
import { HeldBytes } from './intake.ts';
import {
  keepFromParser,
  type NodeInternals,
  relayConnections,
  sourceOf,
} from './node-internals.ts';
import { createPlainOrTls, type HttpSettings } from './plain-or-tls.ts';
import {
  type Expectation,
  endWithFailure,
  type OutgoingReply,
  resetConnection,
  sendFailure,
  syntaxFailure,
} from './reply.ts';
import { StallWatch } from './slow-readers.ts';

/** Whoever answers a request. */
export interface Answering {
  /** What the reply calls the request, also where the server gives it. */
  readonly requestId: string;
  /** Its reply has left, or its connection is gone. */
  closed(): void;
}

/** `isBeyondLimit`: the connection is one too many, and only health and metrics are to be answered on it. */
export type RequestHandler = (
  request: IncomingMessage,
  response: OutgoingReply,
  isBeyondLimit: boolean,
) => Answering;

/** How what is no request is answered. */
export type Refusals = {
  readonly nextRequestId: () => string;
  /** Name, value, name, value; beside its own. */
  readonly headers: readonly string[];
  /** Told of each; `bytes`: of the reply's body. */
  readonly observe: (client: string, failure: Failure, bytes: number, requestId: string) => void;
};

const unobserved: Refusals = { nextRequestId: () => '-', headers: [], observe: () => {} };

/** A server that is not listening yet. */
export type HttpServer = {
  readonly server: Server;
  /** Requests being answered now. */
  readonly inFlight: () => number;
  /** Clients connected now, and those turned away for their number so far. */
  readonly connections: () => { readonly open: number; readonly refused: number };
  /** Bytes of requests that have not been read to their end, of all clients together. */
  readonly heldBytes: () => number;
  /**
   * Stops listening as soon as the kernel holds no connection that nobody has accepted, at once where the socket stays with
   * others, and then calls `onClosed`; resolves when the last connection is gone. Idle ones get `idleGraceMs` more.
   */
  readonly drain: (
    idleGraceMs: number,
    socketStays: boolean,
    onClosed: () => void,
  ) => Promise<void>;
  /** Ends all connections at once. */
  readonly destroyConnections: () => void;
  /** Serves a connection of another worker, whose requests are counted and bounded there. */
  readonly takeForwarded: (socket: Socket) => void;
};

/**
 * closing: accepts what the kernel holds, and begins no request meanwhile, so that it gets to the end of it. draining:
 * accepts nobody, and the connections that are left end with their next reply. Only ever forward.
 */
type Phase = 'serving' | 'closing' | 'draining';

/**
 * Creates the server. Each request reaches `handle` after those before it on its connection were answered.
 */
export function createHttpServer(
  settings: HttpSettings,
  handle: RequestHandler,
  internals: NodeInternals,
  refusals: Refusals = unobserved,
): HttpServer {
  const { connections, timeouts } = settings;
  const turns = new Turns();
  const held = new HeldBytes(settings.mostHeldBytes);
  const { repliesAtOnce } = internals;
  const clients = new Clients(
    {
      held,
      maxUrlBytes: settings.maxUrlBytes,
      refuse: (client, failure) => refuseInTurn(client, failure),
      goOn: (client) => goOn(client),
    },
    internals,
  );
  /** Connections of other workers: no clients. */
  const forwarded = new Set<Socket>();
  let phase: Phase = 'serving';
  let inFlight = 0;
  let refused = 0;

  const server = createPlainOrTls(settings);
  server.timeout = timeouts.stallMs;
  // Beyond the reserve the socket is closed as it is accepted: there is no descriptor to spare for a reply.
  server.maxConnections = connections.served + connections.reserved;
  server.on('drop', () => {
    refused += 1;
  });
  // Requests come with the socket that speaks HTTP: over TLS that is not the accepted one.
  const connected = settings.tls === null ? 'connection' : 'secureConnection';
  if (!internals.takenParser) relayConnections(server, connected);
  if (internals.sharedReads) server.prependListener(connected, keepFromParser);
  server.on(connected, (socket: Socket) => {
    const isForwarded = forwarded.has(sourceOf(socket));
    const isBeyondLimit = !isForwarded && clients.size - forwarded.size >= connections.served;
    clients.open(socket, isBeyondLimit, isForwarded);
    // Node has it begin to read in a tick that comes before this one.
    if (phase === 'closing') process.nextTick(() => phase === 'closing' && socket.pause());
    if (!isBeyondLimit) return;
    refused += 1;
    endWithin(socket, timeouts.beyondLimitMs);
  });

  // The kernel took nothing for as long as the socket's timer says: idle between requests, or a reply that is not taken, or slowly.
  server.on('timeout', (socket: Socket) => {
    const current = clients.of(socket)?.current ?? null;
    if (current === null) socket.destroy();
    else if (current.response.writableEnded && !current.response.isForwarded) {
      resetIfStalled(socket, current.response);
    }
  });

  const watched = new WeakSet<OutgoingReply>();
  /** The reply has been written in full, by whichever part of the code. */
  const resetIfStalled = (socket: Socket, response: OutgoingReply): void => {
    if (watched.has(response)) return;
    watched.add(response);
    const watch = new StallWatch(settings.peers.of(sourceOf(socket)), () =>
      resetConnection(socket),
    );
    watch.start();
    response.once('close', () => watch.stop());
  };

  const begin = (client: Client, exchange: Exchange): void => {
    const { request, response } = exchange;
    client.begin(exchange);
    const counted = response.isForwarded ? 0 : 1;
    inFlight += counted;
    const isLast = phase !== 'serving' && !client.intake.hasWhole;
    if (isLast || client.isBeyondLimit || isOfAnotherProtocol(request)) {
      response.shouldKeepAlive = false;
    }
    const answering = handle(request, response, client.isBeyondLimit);
    exchange.requestId = answering.requestId;
    // The only listener of a reply: each further one is paid by every request.
    response.on('close', () => {
      inFlight -= counted;
      client.current = null;
      // Statements that end by this are told of once, with their request.
      response.attended?.closed();
      answering.closed();
      advance(client);
    });
  };

  /** What stands behind a reply waits for a turn of the event loop: refusals would else follow each other without end. */
  const advance = (client: Client): void => {
    // After a reply that closes the connection nothing behind it is parsed: its answer could not be sent.
    if (!client.socket.writable) client.intake.end();
    else if (client.broken !== null) refuse(client.socket, client.broken);
    else if (client.intake.hasMore) turns.await(client);
  };

  const goOn = (client: Client): void => {
    if (!client.socket.writable) client.intake.end();
    else if (!client.isBusy) client.intake.goOn();
  };

  const refuse = (socket: Socket, failure: Failure): void => {
    const client = socket.remoteAddress ?? '';
    const requestId = refusals.nextRequestId();
    const bytes = endWithFailure(socket, failure, requestId, refusals.headers);
    refusals.observe(client, failure, bytes, requestId);
  };

  const refuseInTurn = (client: Client, failure: Failure): void => {
    const { current, socket } = client;
    if (current?.request.complete === true) client.broken = failure;
    else if (current?.response.headersSent === true) current.response.end();
    else if (!socket.writable) return;
    else if (current === null) refuse(socket, failure);
    else refuseHalfRead(current, failure);
  };

  const receive = (
    request: IncomingMessage,
    response: OutgoingReply,
    expectation: Expectation,
  ): void => {
    const client = clients.of(request.socket);
    // Read after the connection's end, from what had come before.
    if (client === undefined || client.isBusy || !request.socket.writable) return;
    response.expectation = expectation;
    response.isSentAtOnce = repliesAtOnce;
    response.isForwarded = forwarded.has(sourceOf(request.socket));
    begin(client, { request, response, requestId: '' });
  };
  // Node would answer an expectation before anybody has looked at the rest of the head.
  server.on('request', (request, response: OutgoingReply) => receive(request, response, 'none'));
  server.on('checkContinue', (request, response: OutgoingReply) =>
    receive(request, response, '100-continue'),
  );
  server.on('checkExpectation', (request, response: OutgoingReply) =>
    receive(request, response, 'unknown'),
  );

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const client = clients.of(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || client === undefined) {
      socket.destroy();
      return;
    }
    client.intake.end();
    refuseInTurn(client, syntaxFailure(error));
  });

  const unused = new WeakSet<Socket>();
  /** Closes connections on which nothing has come since the last call. To node they are requests that have begun, with 20 s for their headers. */
  const closeUnusedConnections = (): void => {
    if (phase !== 'draining') return;
    for (const { socket } of clients) {
      if (socket.bytesRead > 0) continue;
      if (unused.has(socket)) socket.destroy();
      unused.add(socket);
    }
  };

  const drain: HttpServer['drain'] = (idleGraceMs, socketStays, onClosed) => {
    phase = 'closing';
    for (const { current, intake, socket } of clients) {
      if (current === null) socket.pause();
      else if (!intake.hasWhole) current.response.shouldKeepAlive = false;
    }
    // Repeated: what looked like a request behind another may have been a part of its body.
    const grace = setInterval(() => {
      server.closeIdleConnections();
      // Sockets are read between the timer and this call: a request that has come by now is answered.
      setImmediate(closeUnusedConnections);
    }, idleGraceMs);
    return new Promise((resolve) => {
      const close = () => {
        // Not http's own close, which ends idle connections at once.
        NetServer.prototype.close.call(server, () => {
          clearInterval(grace);
          resolve();
        });
        phase = 'draining';
        for (const { isBusy, socket } of clients) if (!isBusy) socket.resume();
        onClosed();
      };
      if (socketStays) close();
      else whenBacklogIsEmpty(server, close);
    });
  };

  return {
    server,
    inFlight: () => inFlight,
    connections: () => ({ open: clients.size - forwarded.size, refused }),
    heldBytes: () => held.total,
    drain,
    destroyConnections: () => server.closeAllConnections(),
    takeForwarded: (socket) => {
      forwarded.add(socket);
      socket.once('close', () => forwarded.delete(socket));
      server.emit(connected, socket);
    },
  };
}

/**
 * What follows such a head may be of another protocol, or be taken for that by somebody before us: the connection ends
 * with its reply (RFC 9110 section 7.8, RFC 9112 section 6.1).
 */
function isOfAnotherProtocol({ headers, httpVersionMinor }: IncomingMessage): boolean {
  if (headers.upgrade !== undefined) return true;
  return httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined;
}

/** Its handler waits for the rest of it, which is not parsed any more. */
function refuseHalfRead({ response, requestId }: Exchange, failure: Failure): void {
  response.shouldKeepAlive = false;
  sendFailure(response, failure, requestId);
}

function endWithin(socket: Socket, ms: number): void {
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  socket.once('close', () => clearTimeout(timer));
}
