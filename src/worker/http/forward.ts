// Requests between workers: a worker passes a request on at another worker's unix socket, and that worker accepts it there.
import type { IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { shortenPath } from '../../shared/process/socket-paths.ts';
import { withoutHeaders } from '../encode/head.ts';
import { resetConnection } from './failure-reply.ts';
import { request as sendRequest } from './node-http.ts';
import type { Peers } from './peers.ts';
import type { OutgoingReply } from './reply.ts';
import type { IncomingRequest, RequestHeaders } from './request.ts';
import { StallWatch } from './slow-readers.ts';

/** The origin of a request that is passed on. */
export type RequestOrigin = {
  /** The client's address; empty for a unix socket. */
  readonly client: string;
  /** The version of HTTP that the client speaks. */
  readonly httpVersion: string;
  /** How long ago its head came. */
  readonly ageMs: number;
};

/** The header with the origin, which only workers send. */
const originHeader = 'x-dbhttpd-origin';

const unixSocket = '-';
/** A worker that hangs does not hold up the order of other requests for longer. */
const handOverMs = 1000;

function formatOrigin({ client, httpVersion, ageMs }: RequestOrigin): string {
  return `${client === '' ? unixSocket : client} ${httpVersion} ${ageMs.toFixed(3)}`;
}

/** Reads the origin of a request that another worker has sent; null: its header is missing. */
export function readOrigin({ [originHeader]: value }: RequestHeaders): RequestOrigin | null {
  if (typeof value !== 'string') return null;
  const [client = '', httpVersion = '', ageMs = ''] = value.split(' ');
  return { client: client === unixSocket ? '' : client, httpVersion, ageMs: Number(ageMs) };
}

/** A request to pass on. */
type Forwarded = {
  readonly request: IncomingRequest;
  readonly body: Buffer;
  readonly requestId: string;
  readonly origin: RequestOrigin;
  /** How long to wait for the head of a reply. */
  readonly timeoutMs: number;
};

/**
 * Why there is no reply. gone: the other worker does not listen. not reached: too many connections wait there, or this process has no
 * descriptor left. lost: the connection ended before a reply began. late: no reply began in time.
 */
export type Unanswered = 'gone' | 'not reached' | 'lost' | 'late';

/** The events of a request that is passed on. */
export type ForwardEvents = {
  /** The other worker is responsible for the request from now on. */
  readonly taken: () => void;
  /** There is no reply. Called at most once, and not if the client is gone too. */
  readonly unanswered: (why: Unanswered) => void;
};

/**
 * Errors of a socket without a listener: its name is missing, or remains from a killed process (unix(7), connect(2)), or the worker closed
 * it before it accepted the connection, which it does once it has no transaction.
 */
const noListener = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET']);

/** Headers that are not passed on: they are for one hop (RFC 9110 section 7.6.1), or written again. */
const notForwarded = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'content-length',
  'x-request-id',
  originHeader,
]);
const notPassedBack = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date']);

/**
 * Passes a request on, and its reply back to the client. Each request has a connection of its own: a connection that is used again may be
 * gone, and it would not be known whether a request that was written to it was executed. Resolves when the kernel has all of the request,
 * or after `handOverMs`: requests that are passed on later come there later.
 * @param path the other worker's socket
 */
export function forwardRequest(
  path: string,
  { request, body, requestId, origin, timeoutMs }: Forwarded,
  response: OutgoingReply,
  events: ForwardEvents,
  peers: Peers,
): Promise<void> {
  const short = shortenPath(path);
  let wasSent = false;
  let isAnswered = false;
  const conclude = (why: Unanswered) => {
    clearTimeout(timer);
    if (!isAnswered && !response.destroyed) events.unanswered(why);
    isAnswered = true;
  };
  const outgoing = sendRequest({
    socketPath: short.path,
    agent: false,
    method: request.method,
    path: request.url,
    headers: [
      ...withoutHeaders(request.rawHeaders, notForwarded),
      ...['Content-Length', String(body.length), 'X-Request-ID', requestId, 'Connection', 'close'],
      ...[originHeader, formatOrigin(origin)],
    ],
  });
  const timer = setTimeout(() => {
    conclude('late');
    outgoing.destroy();
  }, timeoutMs);
  response.attended = { closed: () => outgoing.destroy() };
  outgoing.on('socket', (socket) => {
    socket.once('connect', () => {
      short.forget();
      wasSent = true;
      events.taken();
    });
  });
  outgoing.on('response', (incoming) => {
    isAnswered = true;
    clearTimeout(timer);
    passBack(incoming, response, peers);
  });
  outgoing.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
    short.forget();
    const unreached = noListener.has(code) ? 'gone' : 'not reached';
    conclude(wasSent ? 'lost' : unreached);
  });
  outgoing.end(body);
  return new Promise((resolve) => {
    const late = setTimeout(resolve, handOverMs);
    const handedOver = () => {
      clearTimeout(late);
      resolve();
    };
    outgoing.once('finish', handedOver);
    outgoing.once('close', handedOver);
  });
}

/** A reply that breaks off there is reset here. A client that stalls is reset too. */
function passBack(incoming: IncomingMessage, response: OutgoingReply, peers: Peers): void {
  const { socket } = response;
  if (socket === null) return;
  incoming.on('error', () => resetConnection(socket));
  // The other worker cannot see this client: it notices a stalled client by the end of this connection.
  const watch = new StallWatch(peers.of(socket), () => resetConnection(socket));
  watch.start();
  response.onceClosed(() => watch.stop());
  // The other worker has set all headers that are set here.
  response.removeAddedHeaders();
  response.writeHead(
    incoming.statusCode ?? 502,
    withoutHeaders(incoming.rawHeaders, notPassedBack),
  );
  incoming.on('data', (piece: Buffer) => {
    if (response.write(piece)) return;
    incoming.pause();
    response.onceDrained(() => incoming.resume());
  });
  incoming.on('end', () => response.end());
}

/** The socket for requests from other workers. */
export type ForwardedConnections = {
  /** Closes the socket and removes its name. Resolves when its last connection is gone. Idempotent. */
  readonly close: () => Promise<void>;
};

/**
 * Accepts connections of other workers at a path that only the owner may use.
 * @param onError called with the reason if it cannot listen or accept
 */
export function acceptForwarded(
  path: string,
  take: (socket: Socket) => void,
  onError: (error: Error) => void,
): ForwardedConnections {
  const server = createServer({ noDelay: true }, take);
  server.on('error', onError);
  server.unref();
  const short = shortenPath(path);
  server.once('listening', short.forget);
  // The name is bound before `listen` returns. `exclusive`: the worker does not ask the supervisor for it.
  const umask = process.umask(0o177);
  try {
    server.listen({ path: short.path, exclusive: true });
  } finally {
    process.umask(umask);
  }
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  };
}
