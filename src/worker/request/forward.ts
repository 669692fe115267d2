// Passes a request on to the worker that must answer it, at that worker's unix socket, and its reply back to the client.
// Must not know why it is that worker's to answer, nor what the request says.

import type { IncomingMessage } from 'node:http';
import { shortenPath } from '../../shared/process/socket-paths.ts';
import { request as sendRequest } from '../http/node-internals.ts';
import type { Peers } from '../http/peers.ts';
import { type OutgoingReply, resetConnection } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';
import { StallWatch } from '../http/slow-readers.ts';
import type { Origin } from '../observe/observation.ts';
import { formatOrigin, originHeader } from './origin.ts';

/** What is passed on. */
export type Forwarded = {
  readonly request: IncomingRequest;
  readonly body: Buffer;
  readonly requestId: string;
  readonly origin: Origin;
  /** How long the beginning of a reply is waited for. */
  readonly timeoutMs: number;
};

/**
 * Why there is no reply. `gone`: nobody listens there any more; `not reached`: too many wait to be let in there, or this process has
 * no descriptor left; `lost`: the other one had been reached, and went before it had begun to answer; `late`: it has not begun in time.
 */
export type Unanswered = 'gone' | 'not reached' | 'lost' | 'late';

/** Told of what becomes of it. */
export type ForwardEvents = {
  /** The other one has it from here on. */
  readonly taken: () => void;
  /** There is no reply. Called once; not where the client is gone too. */
  readonly unanswered: (why: Unanswered) => void;
};

/**
 * The name is not there, or was left over by a process that was killed (unix(7), connect(2)); or it was closed before the connection
 * was taken, which a worker does that has no transaction any more.
 */
const nobodyListens = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET']);

/** They are between two neighbours (RFC 9110 section 7.6.1), or said anew for what is passed on. */
const ofOneHop = new Set([
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
const saidAnew = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date']);

/**
 * Passes a request on, on a connection of its own: one that is used again may be gone, and whether what was written to it was
 * executed could not be told.
 * @param path the other worker's socket
 */
export function forwardRequest(
  path: string,
  { request, body, requestId, origin, timeoutMs }: Forwarded,
  response: OutgoingReply,
  events: ForwardEvents,
  peers: Peers,
): void {
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
      ...without(request.rawHeaders, ofOneHop),
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
    const unreached = nobodyListens.has(code) ? 'gone' : 'not reached';
    conclude(wasSent ? 'lost' : unreached);
  });
  outgoing.end(body);
}

/** A reply that ends too early is one here too, and one that nobody takes any more ends. */
function passBack(incoming: IncomingMessage, response: OutgoingReply, peers: Peers): void {
  const { socket } = response;
  if (socket === null) return;
  incoming.on('error', () => resetConnection(socket));
  // The other worker cannot see this client: it learns that the client has stalled from the end of our connection to it.
  const watch = new StallWatch(peers.of(socket), () => resetConnection(socket));
  watch.start();
  response.on('close', () => watch.stop());
  response.statusCode = incoming.statusCode ?? 502;
  takeHeaders(without(incoming.rawHeaders, saidAnew), response);
  incoming.pipe(response);
}

/** In the place of what was set here, which the other worker has said too; `writeHead` would keep the last of several of one name. */
function takeHeaders(headers: readonly string[], response: OutgoingReply): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  for (let at = 0; at < headers.length; at += 2) {
    response.appendHeader(headers[at] as string, headers[at + 1] as string);
  }
}

/** Header lines as name, value, name, value. */
function without(headers: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (!names.has(name.toLowerCase())) kept.push(name, headers[at + 1] as string);
  }
  return kept;
}
