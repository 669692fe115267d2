// The last reply on a connection whose client is still sending: it must reach the client all the same.
// Must not know what is replied.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { announcesBody } from './body-announcement.ts';
import { sourceOf } from './node-internals.ts';

/**
 * Bytes that arrive at a closed socket are answered by RST, at which clients throw away what they have
 * received (RFC 9112 section 9.6): so they are read and dropped, no longer than this.
 */
const lingerMs = 2_000;

/** Ends a reply whose request may not have been read to its end. `body` is all of the body. */
export function endReply(response: ServerResponse, body: string): void {
  const request = response.req;
  const isAllRead =
    request.complete || !announcesBody(request) || sourceOf(request.socket).readableEnded;
  if (response.shouldKeepAlive || isAllRead) {
    response.end(body);
    return;
  }
  response.write(body);
  const timer = setTimeout(() => response.end(), lingerMs);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  request.once('close', end);
  request.once('end', end);
  request.resume();
}

/** Sends the last bytes on a socket of which nothing more is parsed: what still comes is read, and dropped by who reads it. */
export function endSocket(socket: Socket, bytes: string): void {
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroySoon());
  socket.resume();
}
