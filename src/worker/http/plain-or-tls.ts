// Node's server of HTTP or HTTPS with our bounds in the place of its own.
// Must not know what is done with a request.
import type { Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { mostHeadersBytes } from './intake.ts';
import type { ClientTimeouts, ConnectionLimit } from './limits.ts';
import { createServer } from './node-internals.ts';
import type { Peers } from './peers.ts';
import { OutgoingReply } from './reply.ts';

/** What bounds the server, and whether it speaks TLS. */
export type HttpSettings = {
  readonly maxUrlBytes: number;
  /** Bytes of requests that have not been read to their end, of all clients together. */
  readonly mostHeldBytes: number;
  readonly keepaliveTimeoutMs: number;
  readonly connections: ConnectionLimit;
  readonly timeouts: ClientTimeouts;
  /** Of all sockets of the worker. */
  readonly peers: Peers;
  /** PEM texts; null serves plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
};

/** Has connections from now on shown another certificate; those that are open keep theirs. */
export function replaceKeyPair(server: Server, pair: { cert: string; key: string }): void {
  if (server instanceof TlsServer) server.setSecureContext(pair);
}

/** Creates the server; it does not listen yet. */
export function createPlainOrTls(settings: HttpSettings): Server {
  const options: ServerOptions = {
    maxHeaderSize: settings.maxUrlBytes + mostHeadersBytes,
    keepAliveTimeout: settings.keepaliveTimeoutMs,
    headersTimeout: settings.timeouts.headersMs,
    requestTimeout: settings.timeouts.requestMs,
    connectionsCheckingInterval: settings.timeouts.checkMs,
    requireHostHeader: false,
    noDelay: true,
    ServerResponse: OutgoingReply as typeof ServerResponse,
  };
  const server =
    settings.tls === null
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...settings.tls,
          handshakeTimeout: settings.timeouts.headersMs,
        });
  // Node would drop those beyond its limit in silence; a head's length has been checked, and so will be their number.
  server.maxHeadersCount = 0;
  return server;
}
