// TLS towards clients: the versions and cipher suites that a server offers, its certificate, which may be replaced, and the TCP sockets below.
import type { Server, Socket } from 'node:net';
import {
  createServer as createTlsServer,
  type SecureContextOptions,
  TLSSocket,
  Server as TlsServer,
} from 'node:tls';
import type { Handshakes } from './handshakes.ts';

/** PEM texts of a certificate and its key. */
export type KeyPair = { readonly cert: string; readonly key: string };

/**
 * TLS 1.3, and of TLS 1.2 only suites with forward secrecy and authenticated encryption (RFC 9325 section 4.2): node's defaults include
 * static RSA, with which a stolen key decrypts what was recorded before, and CBC.
 */
const cipherSuites = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** The options for TLS with a certificate. Each replacement needs all of them: node keeps nothing of the one before. */
export function secureOptions({ cert, key }: KeyPair): SecureContextOptions {
  return { cert, key, ciphers: cipherSuites, minVersion: 'TLSv1.2' };
}

/** Serves further connections with another certificate; open ones keep theirs. */
export function replaceKeyPair(server: Server, pair: KeyPair): void {
  if (server instanceof TlsServer) server.setSecureContext(secureOptions(pair));
}

/** The TCP sockets below open TLS connections. */
const transports = new WeakMap<Socket, Socket>();

/** The TCP socket of a connection, which can be reset; undefined: its TLS connection is not known here. */
export function transportOf(socket: Socket): Socket | undefined {
  return socket instanceof TLSSocket ? transports.get(socket) : socket;
}

/**
 * Creates a server whose `secureConnection` has sockets that `transportOf` knows.
 * @param handshakeMs how long a handshake may take
 * @param handshakes has those that go on
 */
export function createSecureServer(
  pair: KeyPair,
  handshakeMs: number,
  handshakes: Handshakes,
): TlsServer {
  const server = createTlsServer({
    ...secureOptions(pair),
    handshakeTimeout: handshakeMs,
    ALPNProtocols: ['http/1.1'],
    noDelay: true,
  });
  server.on('connection', (socket: Socket) => handshakes.begin(socket));
  server.prependListener('secureConnection', (secure) => {
    // A client that ends its side in the handshake is gone.
    secure.allowHalfOpen = true;
    const socket = handshakes.finish(secure);
    if (socket !== undefined) transports.set(secure, socket);
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}
