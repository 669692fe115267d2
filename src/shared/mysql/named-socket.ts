// A TCP socket that remembers for TLS which address it was opened to.
// Must not know what is said on it.
import { connect, isIP, type Socket } from 'node:net';

const keepAliveDelayMs = 10_000;

/** What Node's TLS asks a socket for when nobody names the server (`_tls_wrap`, Node 20 to 24). */
type Named = { _host?: string };

/**
 * Connects. Node itself remembers names only, and mysql2 hands the address on to nobody: a certificate for `localhost`
 * would do for every server that is configured by its address, and one for the address for none.
 */
export function connectNamed(host: string, port: number): Socket {
  const socket = connect({
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveDelayMs,
  });
  if (isIP(host) !== 0) (socket as Named)._host = host;
  return socket;
}
