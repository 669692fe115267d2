// What of node is used here that its documentation does not name: each with what it buys, and the documented way in its place.
// Must not know requests, nor who decides which of them are used: node-internals-check.ts tries them when a worker starts.
//
// All were seen on Node 20.20, 22.23, 24.21 and 26.10. Two are elsewhere: shared/process/listening-socket.ts, which the supervisor needs
// too, and worker/tick-objects.ts, which must have run before the other modules of a worker are read.

import { type Server, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

export const { createServer, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');

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

/** Which internals a worker uses where it has the choice; false: the documented way. */
export type NodeInternals = {
  /** Whole replies leave by `sendAtOnce`. */
  readonly repliesAtOnce: boolean;
  /** Sockets are read into one `ReadBuffer`. */
  readonly sharedReads: boolean;
  /** Node's parser is taken off its socket by `takeParser`. */
  readonly takenParser: boolean;
};

/** All of them. */
export const allInternals: NodeInternals = {
  repliesAtOnce: true,
  sharedReads: true,
  takenParser: true,
};
/** None of them. */
export const noInternals: NodeInternals = {
  repliesAtOnce: false,
  sharedReads: false,
  takenParser: false,
};

/** What writeHead, write and end do a reply with. */
type ReplyInside = {
  _header: string | null;
  /** The connection is closed behind this reply. */
  _last: boolean;
  readonly _keepAliveTimeout: number;
  _send(body: string, encoding: 'latin1'): boolean;
};

/**
 * Sends a reply's head and body in one write; end() must follow. What it buys: writeHead looks at every header again, and
 * write and end take two steps to one write; docs/profiles.md has what this brought together with two other changes.
 * The documented way: writeHead and end.
 * @param head status line and lines with their ends, all but Connection; they are not checked
 * @param body one character a byte
 */
export function sendAtOnce(
  reply: InstanceType<typeof ServerResponse>,
  head: string,
  body: string,
): void {
  const inside = reply as unknown as ReplyInside;
  const isLast = !reply.shouldKeepAlive;
  const connection = isLast
    ? 'Connection: close\r\n'
    : `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(inside._keepAliveTimeout / 1000)}\r\n`;
  inside._last = isLast;
  inside._header = `${head}${connection}\r\n`;
  inside._send(body, 'latin1');
}

/** What one read may bring, as in node's own parser. */
const mostReadBytes = 64 * 1024;

/** As the callback of net's option `onread`: called on the socket with what was read, which is valid until it returns. */
export type OnRead = (this: Socket, length: number, bytes: Buffer) => true;

/** Node's own names for what `onread` sets: its documentation has them for sockets that connect, not for those accepted. */
type SocketInside = {
  [name: symbol]: unknown;
  readonly _handle?: { useUserBuffer?(buffer: Buffer): void; _consumed?: boolean };
};

/** Where sockets keep the buffer, and whom they call. */
type Names = { readonly buffer: symbol; readonly callback: symbol };

/**
 * Keeps node's parser from reading a socket by itself; to be called before node's own listener for connections is. It is a
 * part of `sharedReads`. The documented way: a listener for `data`, at which node's parser lets go of the socket.
 */
export function keepFromParser(socket: Socket): void {
  const { _handle: handle } = socket as unknown as SocketInside;
  if (handle !== undefined) handle._consumed = true;
}

/**
 * The buffer that all sockets of one server are read into. What it buys: 2,000 clients that came at once were answered after
 * 0.7 s in the place of 0.9 (Node 20.20). The documented way: a listener for `data`, and a new buffer of 64 KiB for each read.
 */
export class ReadBuffer {
  readonly #bytes: Buffer | null;
  readonly #onRead: OnRead;
  readonly #onData: (this: Socket, bytes: Buffer) => void;
  #names: Names | null = null;

  /**
   * @param onRead one function for all sockets: with one for each, V8 (Node 20.20) keeps them and what they know beyond
   *   the collections of young garbage, and clients that connect for each request cost a third more CPU
   * @param isShared false: sockets are read in the documented way
   */
  constructor(onRead: OnRead, isShared: boolean) {
    this.#bytes = isShared ? Buffer.allocUnsafeSlow(mostReadBytes) : null;
    this.#onRead = onRead;
    this.#onData = function (bytes) {
      onRead.call(this, bytes.length, bytes);
    };
  }

  /** Has a socket read into the buffer; one whose insides are not as they are known is read in the documented way. */
  read(socket: Socket): void {
    this.#names ??= findNames(socket);
    const inside = socket as unknown as SocketInside;
    const handle = inside._handle;
    if (this.#bytes === null || this.#names === null || !handle?.useUserBuffer) {
      socket.on('data', this.#onData);
      return;
    }
    inside[this.#names.buffer] = this.#bytes;
    inside[this.#names.callback] = this.#onRead;
    handle.useUserBuffer(this.#bytes);
  }
}

function findNames(socket: Socket): Names | null {
  const symbols = Object.getOwnPropertySymbols(socket);
  const buffer = symbols.find(({ description }) => description === 'kBuffer');
  const callback = symbols.find(({ description }) => description === 'kBufferCb');
  return buffer === undefined || callback === undefined ? null : { buffer, callback };
}

/**
 * Takes node's parser off the socket that it listens to; what is returned has it parse bytes, and a request that begins with
 * them is there when it returns. Null: the parser does not listen, as it did since Node 0.x. What it buys: requests are
 * checked, counted and put in order before they are parsed. The documented way: a `RelayedSocket` in the socket's place.
 */
export function takeParser(socket: Socket | RelayedSocket): ((bytes: Buffer) => void) | null {
  if (socket instanceof RelayedSocket) return (bytes) => void socket.emit('data', bytes);
  const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
  if (parse === undefined) return null;
  socket.off('data', parse);
  return parse;
}

/** The socket that is read for what node's parser is to get from this one. */
export function sourceOf(socket: Socket | RelayedSocket): Socket {
  return socket instanceof RelayedSocket ? socket.accepted : socket;
}

/** What libuv was given, and what of it it still holds: of a write of which a part has left, the rest. */
type CountingHandle = {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  readonly fd?: number;
};
type CountedSocket = {
  /** Over TLS the handle below is the connection's. */
  readonly _handle?: (CountingHandle & { readonly _parent?: CountingHandle }) | null;
};

function countingHandle(socket: Socket): CountingHandle | null {
  const { _handle: handle } = sourceOf(socket) as unknown as CountedSocket;
  return handle?._parent ?? handle ?? null;
}

/** Whether sockets tell what libuv holds of their writes: looked for at each use, so that nobody has to hand it down. */
export function tellsTakenBytes(socket: Socket): boolean {
  const handle = countingHandle(socket);
  return typeof handle?.bytesWritten === 'number' && typeof handle.writeQueueSize === 'number';
}

/**
 * Bytes that a socket's peer, or the kernel for it, has taken. What the internals buy: a part of a write counts when it has
 * left. The documented way: writes count once they have left whole, since `bytesWritten` counts what waits in node's queue.
 */
export function takenBytes(socket: Socket): number {
  const handle = countingHandle(socket);
  const { bytesWritten, writeQueueSize } = handle ?? {};
  return bytesWritten === undefined || writeQueueSize === undefined
    ? socket.bytesWritten - socket.writableLength
    : bytesWritten - writeQueueSize;
}

/**
 * The descriptor of a socket, by which its inode is found; null: node keeps it elsewhere, or the socket is closed. What it buys: a
 * peer's acknowledgements are seen. The documented way: what the kernel takes counts.
 */
export function descriptorOf(socket: Socket): number | null {
  const descriptor = countingHandle(socket)?.fd;
  return typeof descriptor === 'number' && descriptor >= 0 ? descriptor : null;
}

/** Changes whenever a socket's peer takes something, and when more is written; as `takenBytes`, but that TLS has its own count. */
export function waitingBytes(socket: Socket): number {
  const source = sourceOf(socket);
  const { _handle: handle } = source as unknown as CountedSocket;
  return source.writableLength + (handle?.writeQueueSize ?? 0);
}

/**
 * The accepted socket that a TLSSocket speaks on, else the socket itself. What it buys: a TLS connection can be reset.
 * Undefined where node keeps it elsewhere: the connection can only be closed then. TLS's own end is missing in that
 * case too, which most clients notice.
 */
export function transportOf(socket: Socket | RelayedSocket): Socket | undefined {
  const source = sourceOf(socket);
  return source instanceof TLSSocket ? (source as { readonly _parent?: Socket })._parent : source;
}

/** V8 collects no feedback on a function before it has been called a few times. */
const enough = 50;

/**
 * Lets node create sockets at the speed that its code was written for; once is enough. net.Socket spreads its options and
 * adds to what it gets. In V8 11.3 (Node 20) what a fast spread makes cannot pass on the hidden classes that it grows: each
 * socket's options get three of their own, and every look at them misses its inline cache, about sixty times a connection.
 * Options in dictionary mode make that one spread a slow one for good, whose results share their classes. Other versions of
 * V8 lose nothing by it. With 48 clients that connect for each request (point/48-close of scripts/bench), it took 128 -> 98 µs
 * of CPU a point query. The documented way: not to do it.
 */
export function easeSocketCreation(): void {
  const options: { readable: boolean; writable?: boolean; handle?: null } = {
    readable: false,
    writable: false,
    handle: null,
  };
  // Deleting what was not added last turns an object into a dictionary.
  delete options.writable;
  for (let n = 0; n < enough; n += 1) new Socket(options as { readable: boolean }).destroy();
}
