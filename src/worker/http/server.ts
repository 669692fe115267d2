// The HTTP server: limits, hostile syntax, pipelined requests in order, draining.
// Must not know routes: it hands each request to one handler, one at a time for each connection.
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import { type Failure, failureBody, jsonHeaders, refusal, sendFailure } from './failure.ts';
import { endSocket } from './linger.ts';

export type HttpSettings = {
  readonly maxUrlBytes: number;
  readonly keepaliveTimeoutMs: number;
  /** PEM texts; null serves plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
};

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that is not listening yet. */
export type HttpServer = {
  readonly server: Server;
  /** Requests being answered now. */
  readonly inFlight: () => number;
  /** Stops listening; resolves when the last connection is gone. Idle ones get `idleGraceMs` more. */
  readonly drain: (idleGraceMs: number) => Promise<void>;
  /** Ends all connections at once. */
  readonly destroyConnections: () => void;
};

/** All headers together but for the URL, like node's own default. */
const maxHeadersBytes = 16 * 1024;
const maxWaitingPipelined = 16;
const headersTimeoutMs = 20_000;
const requestTimeoutMs = 60_000;
const timeoutCheckMs = 2_000;

type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** What is known about one client connection. */
type ClientState = {
  current: Exchange | null;
  readonly waiting: Exchange[];
  /** The bytes that came after the current request were no HTTP: answered when its turn comes. */
  broken: Failure | null;
};

/** Creates the server. Each request reaches `handle` after those before it on its connection were answered. */
export function createHttpServer(settings: HttpSettings, handle: RequestHandler): HttpServer {
  const clients = new Map<Socket, ClientState>();
  let draining = false;
  let inFlight = 0;

  const server = createPlainOrTls(settings);
  server.on('connection', (socket: Socket) => {
    clients.set(socket, { current: null, waiting: [], broken: null });
    socket.on('close', () => clients.delete(socket));
  });

  const begin = (socket: Socket, state: ClientState, exchange: Exchange): void => {
    state.current = exchange;
    inFlight += 1;
    if (draining && state.waiting.length === 0) exchange.response.shouldKeepAlive = false;
    exchange.response.on('close', () => {
      inFlight -= 1;
      state.current = null;
      advance(socket, state);
    });
    handle(exchange.request, exchange.response);
  };

  const advance = (socket: Socket, state: ClientState): void => {
    // After a reply that closes the connection nothing behind it is run: its answer could not be sent.
    if (!socket.writable) return;
    const next = state.waiting.shift();
    if (next !== undefined) {
      if (state.waiting.length < maxWaitingPipelined && socket.isPaused()) socket.resume();
      begin(socket, state, next);
    } else if (state.broken !== null) {
      endWithFailure(socket, state.broken);
    }
  };

  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const state = clients.get(socket) as ClientState;
    if (state.current === null) {
      begin(socket, state, { request, response });
      return;
    }
    state.waiting.push({ request, response });
    if (state.waiting.length >= maxWaitingPipelined) socket.pause();
  });

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const state = clients.get(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || state === undefined) {
      socket.destroy();
      return;
    }
    const failure = syntaxFailure(error, settings.maxUrlBytes);
    const { current } = state;
    if (current?.request.complete === true) state.broken = failure;
    else if (current?.response.headersSent === true) current.response.end();
    else endWithFailure(socket, failure);
  });
  server.on('connect', (_request, socket: Socket) =>
    endWithFailure(socket, refusal(405, 'METHOD_NOT_ALLOWED', 'This is no proxy.')),
  );
  server.on('checkExpectation', (_request, response: ServerResponse) =>
    sendFailure(response, refusal(417, 'EXPECTATION_FAILED', 'Only 100-continue is understood.')),
  );

  const drain = (idleGraceMs: number): Promise<void> => {
    draining = true;
    for (const { current, waiting } of clients.values()) {
      if (current !== null && waiting.length === 0) current.response.shouldKeepAlive = false;
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
    drain,
    destroyConnections: () => server.closeAllConnections(),
  };
}

function createPlainOrTls(settings: HttpSettings): Server {
  const options: ServerOptions = {
    maxHeaderSize: settings.maxUrlBytes + maxHeadersBytes,
    keepAliveTimeout: settings.keepaliveTimeoutMs,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: timeoutCheckMs,
    requireHostHeader: false,
    noDelay: true,
  };
  return settings.tls === null
    ? createServer(options)
    : createTlsServer({ ...options, ...settings.tls });
}

/** What node's parser objected to, as the status that says so. */
function syntaxFailure(error: NodeJS.ErrnoException, maxUrlBytes: number): Failure {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return refusal(408, 'REQUEST_TIMEOUT', 'The request did not arrive in time.');
  }
  if (error.code !== 'HPE_HEADER_OVERFLOW') {
    return refusal(400, 'BAD_REQUEST', 'The request is not well-formed HTTP.');
  }
  const { rawPacket } = error as { rawPacket?: Buffer };
  return rawPacket?.includes('\n') === false
    ? refusal(414, 'URL_TOO_LONG', `The URL is longer than ${maxUrlBytes} bytes.`)
    : refusal(431, 'HEADERS_TOO_LARGE', `The headers are longer than ${maxHeadersBytes} bytes.`);
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  414: 'URI Too Long',
  431: 'Request Header Fields Too Large',
};

/** Answers where no ServerResponse exists, and closes. */
function endWithFailure(socket: Socket, failure: Failure): void {
  const body = failureBody(failure);
  const headers = [...jsonHeaders, 'Content-Length', String(Buffer.byteLength(body))];
  let head = `HTTP/1.1 ${failure.status} ${reasons[failure.status] ?? 'Error'}\r\n`;
  for (let index = 0; index < headers.length; index += 2) {
    head += `${headers[index]}: ${headers[index + 1]}\r\n`;
  }
  endSocket(socket, `${head}Connection: close\r\n\r\n${body}`);
}
