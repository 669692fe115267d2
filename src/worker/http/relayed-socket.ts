// A stream in the place of an accepted socket, for a node whose parser cannot be taken off one: to node:http it is the socket.
// Must not know what is read, nor who decides what of it is parsed.
import { type Server, Socket } from 'node:net';
import { Duplex } from 'node:stream';

/**
 * Reads nothing by itself: what it is said to have read is emitted as its `data`. Writes, pauses, time-outs and the end are the
 * socket's. Node's documentation has servers of HTTP take any Duplex with the event `connection`.
 */
export class RelayedSocket extends Duplex {
  readonly accepted: Socket;

  constructor(accepted: Socket) {
    super({ allowHalfOpen: true });
    this.accepted = accepted;
    accepted.on('end', () => this.emit('end'));
    accepted.on('timeout', () => this.emit('timeout'));
    accepted.on('error', (error) => this.destroy(error));
    accepted.on('close', () => this.destroy());
  }

  get remoteAddress(): string | undefined {
    return this.accepted.remoteAddress;
  }

  get localPort(): number | undefined {
    return this.accepted.localPort;
  }

  /** As a socket counts them: those that wait are among them. */
  get bytesWritten(): number {
    return this.accepted.bytesWritten - this.accepted.writableLength + this.writableLength;
  }

  override pause(): this {
    this.accepted.pause();
    return this;
  }

  override resume(): this {
    this.accepted.resume();
    return this;
  }

  override isPaused(): boolean {
    return this.accepted.isPaused();
  }

  setTimeout(ms: number): this {
    this.accepted.setTimeout(ms);
    return this;
  }

  /** Ends when all has been written. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _read(): void {
    // What comes is handed over by whoever reads the socket.
  }

  override _write(
    bytes: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.accepted.write(bytes, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.accepted.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.accepted.destroy();
    done(error);
  }
}

/** Has a server's listeners for `event` get such a stream in the place of each socket. */
export function relayConnections(server: Server, event: string): void {
  const emit = server.emit.bind(server) as (name: string, ...args: unknown[]) => boolean;
  const relay = (name: string, ...args: unknown[]): boolean => {
    const [socket] = args;
    return name === event && socket instanceof Socket
      ? emit(name, new RelayedSocket(socket))
      : emit(name, ...args);
  };
  server.emit = relay as Server['emit'];
}
