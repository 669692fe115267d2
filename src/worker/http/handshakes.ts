// TLS handshakes that go on, and the TCP sockets below them. They count among the connections, since each takes the place of another one.
import type { Socket } from 'node:net';

/** The handshakes of one server. */
export class Handshakes {
  /** A TLS connection does not tell which socket it uses. The peer's address and port are the same. */
  readonly #sockets = new Map<string, Socket>();

  get count(): number {
    return this.#sockets.size;
  }

  /** A TCP connection was accepted. */
  begin(socket: Socket): void {
    const peer = peerOf(socket);
    this.#sockets.set(peer, socket);
    socket.once('close', () => {
      if (this.#sockets.get(peer) === socket) this.#sockets.delete(peer);
    });
  }

  /** The TCP sockets whose handshakes go on. */
  get sockets(): Iterable<Socket> {
    return this.#sockets.values();
  }

  /** Whether the handshake on a TCP socket goes on. */
  includes(socket: Socket): boolean {
    return this.#sockets.get(peerOf(socket)) === socket;
  }

  /** The handshake has succeeded. Returns the TCP socket below; undefined: it is not known. */
  finish(secure: Socket): Socket | undefined {
    const peer = peerOf(secure);
    const socket = this.#sockets.get(peer);
    this.#sockets.delete(peer);
    return socket;
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
