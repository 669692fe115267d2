// The HTTP server: limits, hostile syntax, pipelined requests in order, draining.
// Must not know routes: it hands each request to one handler, one at a time for each connection.
import type { IncomingMessage, Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { endWithFailure, syntaxFailure } from './bare-failure.ts';
import { type Client, Clients, type Exchange } from './clients.ts';
import { type Failure, refusal, sendFailure } from './failure.ts';
import type { OutgoingReply } from './outgoing-reply.ts';
import { createPlainOrTls, type HttpSettings } from './plain-or-tls.ts';
import { resetConnection } from './reset.ts';

/** Whoever answers a request; told when its reply has left, or its connection is gone. */
export interface Answering {
  closed(): void;
}

/** `isBeyondLimit`: the connection is one too many, and only health and metrics are to be answered on it. */
export type RequestHandler = (
  request: IncomingMessage,
  response: OutgoingReply,
  isBeyondLimit: boolean,
) => Answering;

/** Told of what was answered though it was no HTTP; `bytes`: of the reply's body. */
export type RefusalObserver = (client: string, failure: Failure, bytes: number) => void;

/** A server that is not listening yet. */
export type HttpServer = {
  readonly server: Server;
  /** Requests being answered now. */
  readonly inFlight: () => number;
  /** Clients connected now, and those turned away for their number so far. */
  readonly connections: () => { readonly open: number; readonly refused: number };
  /** Stops listening; resolves when the last connection is gone. Idle ones get `idleGraceMs` more. */
  readonly drain: (idleGraceMs: number) => Promise<void>;
  /** Ends all connections at once. */
  readonly destroyConnections: () => void;
};

/** Creates the server. Each request reaches `handle` after those before it on its connection were answered. */
export function createHttpServer(
  settings: HttpSettings,
  handle: RequestHandler,
  onRefusal: RefusalObserver = () => {},
): HttpServer {
  const { connections, timeouts } = settings;
  const clients = new Clients();
  let draining = false;
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
  server.on(settings.tls === null ? 'connection' : 'secureConnection', (socket: Socket) => {
    const isBeyondLimit = clients.size >= connections.served;
    clients.open(socket, isBeyondLimit);
    if (!isBeyondLimit) return;
    refused += 1;
    endWithin(socket, timeouts.beyondLimitMs);
  });

  // Nothing was taken or sent for as long as the socket's timer says: idle between requests, or a reply not taken.
  server.on('timeout', (socket: Socket) => {
    const current = clients.of(socket)?.current ?? null;
    if (current === null) socket.destroy();
    else if (current.response.writableEnded) resetConnection(socket);
  });

  const begin = (socket: Socket, client: Client, exchange: Exchange): void => {
    client.current = exchange;
    inFlight += 1;
    const closes = (draining && !client.hasWaiting) || client.isBeyondLimit;
    if (closes) exchange.response.shouldKeepAlive = false;
    const answering = handle(exchange.request, exchange.response, client.isBeyondLimit);
    // The only listener of a reply: each further one is paid by every request.
    exchange.response.on('close', () => {
      inFlight -= 1;
      client.current = null;
      answering.closed();
      advance(socket, client);
    });
  };

  const advance = (socket: Socket, client: Client): void => {
    // After a reply that closes the connection nothing behind it is run: its answer could not be sent.
    if (!socket.writable) return;
    const next = client.shift();
    if (next !== undefined) {
      if (!client.isFull && socket.isPaused()) socket.resume();
      begin(socket, client, next);
    } else if (client.broken !== null) {
      refuse(socket, client.broken);
    }
  };

  const refuse = (socket: Socket, failure: Failure): void => {
    const bytes = endWithFailure(socket, failure);
    onRefusal(socket.remoteAddress ?? '', failure, bytes);
  };

  server.on('request', (request: IncomingMessage, response: OutgoingReply) => {
    const { socket } = request;
    const client = clients.of(socket);
    // Read after the connection's end, from what had come before: what waited ahead of it was not run either.
    if (client === undefined || !socket.writable) return;
    if (client.current === null) {
      begin(socket, client, { request, response });
      return;
    }
    client.push({ request, response });
    // Node resumes the socket at the end of each message: only then does a pause hold.
    if (client.isFull) process.nextTick(() => client.isFull && socket.pause());
  });

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const client = clients.of(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || client === undefined) {
      socket.destroy();
      return;
    }
    const failure = syntaxFailure(error, settings.maxUrlBytes);
    const { current } = client;
    if (current?.request.complete === true) client.broken = failure;
    else if (current?.response.headersSent === true) current.response.end();
    else refuse(socket, failure);
  });
  server.on('connect', (_request, socket: Socket) =>
    refuse(socket, refusal(405, 'METHOD_NOT_ALLOWED', 'This is no proxy.')),
  );
  server.on('checkExpectation', (_request, response: OutgoingReply) =>
    sendFailure(response, refusal(417, 'EXPECTATION_FAILED', 'Only 100-continue is understood.')),
  );

  const drain = (idleGraceMs: number): Promise<void> => {
    draining = true;
    for (const { current, hasWaiting } of clients) {
      if (current !== null && !hasWaiting) current.response.shouldKeepAlive = false;
    }
    const grace = setTimeout(() => server.closeIdleConnections(), idleGraceMs);
    return new Promise((resolve) => {
      // Not http's own close, which ends idle connections at once.
      NetServer.prototype.close.call(server, () => {
        clearTimeout(grace);
        resolve();
      });
    });
  };

  return {
    server,
    inFlight: () => inFlight,
    connections: () => ({ open: clients.size, refused }),
    drain,
    destroyConnections: () => server.closeAllConnections(),
  };
}

function endWithin(socket: Socket, ms: number): void {
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  socket.once('close', () => clearTimeout(timer));
}
