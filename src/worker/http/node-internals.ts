// All that the worker uses of node's HTTP and sockets without its documentation: what each use gains, and the documented way.
// node-internals-check.ts tries them when a worker starts. All were seen on Node 20.20, 22.23, 24.21 and 26.10. Two more are elsewhere:
// shared/process/listening-socket.ts, which the supervisor needs too, and worker/tick-objects.ts, which must run before other modules load.
import { type Server, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

/**
 * node:http without the facade that an import statement puts before it. From Node 22 on, making that facade reads every export, and one of
 * them loads undici: 11 MiB and more in each worker (22.23 and 24.21), and on Node 22 an unhandled rejection where V8 has no WebAssembly.
 */
export const { createServer, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');

/** Which of the internals with an alternative a worker uses; false: the documented way. */
export type NodeInternals = {
  /** Whole replies leave by `sendAtOnce`. */
  readonly repliesAtOnce: boolean;
  /** Sockets are read into one `ReadBuffer`. */
  readonly sharedReads: boolean;
  /** `takeParser` detaches node's parser from its socket. */
  readonly takenParser: boolean;
};

export const allInternals: NodeInternals = {
  repliesAtOnce: true,
  sharedReads: true,
  takenParser: true,
};
export const noInternals: NodeInternals = {
  repliesAtOnce: false,
  sharedReads: false,
  takenParser: false,
};

/** The members with which writeHead, write and end make a reply. */
type ReplyInside = {
  _header: string | null;
  /** Whether the connection is closed behind this reply. */
  _last: boolean;
  readonly _keepAliveTimeout: number;
  _send(body: string, encoding: 'latin1'): boolean;
};

/**
 * Sends a reply's head and body in one write; end() must follow. Gain: writeHead checks every header again, and write and end take two
 * steps to one write; docs/contributing/profiles.md has what this brought together with two other changes. Documented way: writeHead and end.
 * @param head status line and header lines with their ends, without Connection; they are not checked
 * @param body one character for each byte
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

/** The size of one read, as in node's own parser. */
const readBytes = 64 * 1024;

/** The callback of net's option `onread`, called on the socket. The bytes are valid until it returns. */
export type OnRead = (this: Socket, length: number, bytes: Buffer) => true;

/** The fields that `onread` sets. Node documents the option for sockets that connect, and not for accepted ones. */
type SocketInside = {
  [name: symbol]: unknown;
  readonly _handle?: { useUserBuffer?(buffer: Buffer): void; _consumed?: boolean };
};

/** The keys of a socket's buffer and of its callback. */
type Names = { readonly buffer: symbol; readonly callback: symbol };

/**
 * Keeps node's parser from reading a socket by itself; to be called before node's own listener for connections. It is a part of
 * `sharedReads`. Documented way: a listener for `data`, with which node's parser stops to read the socket.
 */
export function keepFromParser(socket: Socket): void {
  const { _handle: handle } = socket as unknown as SocketInside;
  if (handle !== undefined) handle._consumed = true;
}

/**
 * The buffer that all sockets of one server are read into. Gain: 2,000 clients that came at once were answered after 0.7 s instead of 0.9
 * (Node 20.20). Documented way: a listener for `data`, and a new buffer of 64 KiB for each read.
 */
export class ReadBuffer {
  readonly #bytes: Buffer | null;
  readonly #onRead: OnRead;
  readonly #onData: (this: Socket, bytes: Buffer) => void;
  #names: Names | null = null;

  /**
   * @param onRead one function for all sockets: with one for each, V8 (Node 20.20) moves them and what they refer to into the old
   *   generation, and clients that connect for each request cost a third more CPU
   * @param isShared false: sockets are read in the documented way
   */
  constructor(onRead: OnRead, isShared: boolean) {
    this.#bytes = isShared ? Buffer.allocUnsafeSlow(readBytes) : null;
    this.#onRead = onRead;
    this.#onData = function (bytes) {
      onRead.call(this, bytes.length, bytes);
    };
  }

  /** Reads a socket into the buffer, or in the documented way if the socket's members are not the expected ones. */
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
 * Detaches node's parser from the socket that it listens to, and returns a function that gives it bytes; a request that begins with them
 * exists when that returns. Null: the parser does not listen, which it has done since Node 0.x. Gain: requests are checked, counted and put
 * in order before they are parsed. Documented way: a `RelayedSocket` in place of the socket.
 */
export function takeParser(socket: Socket | RelayedSocket): ((bytes: Buffer) => void) | null {
  if (socket instanceof RelayedSocket) return (bytes) => void socket.emit('data', bytes);
  const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
  if (parse === undefined) return null;
  socket.off('data', parse);
  return parse;
}

/** The accepted socket behind the one that node:http knows. */
export function sourceOf(socket: Socket | RelayedSocket): Socket {
  return socket instanceof RelayedSocket ? socket.accepted : socket;
}

/** A handle of libuv: the bytes that it was given, and those that it still holds, parts of writes included. */
type CountingHandle = {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  readonly fd?: number;
};
type CountedSocket = {
  /** Over TLS the handle of the connection is the parent. */
  readonly _handle?: (CountingHandle & { readonly _parent?: CountingHandle }) | null;
};

function countingHandle(socket: Socket): CountingHandle | null {
  const { _handle: handle } = sourceOf(socket) as unknown as CountedSocket;
  return handle?._parent ?? handle ?? null;
}

/** Whether sockets have the counts of libuv. `takenBytes` looks for them at each use, so that no setting is handed down. */
export function hasByteCounts(socket: Socket): boolean {
  const handle = countingHandle(socket);
  return typeof handle?.bytesWritten === 'number' && typeof handle.writeQueueSize === 'number';
}

/**
 * Bytes that a socket's peer, or the kernel for it, has taken. Gain: a part of a write counts when it has left. Documented way: a write
 * counts when it has left whole, because `bytesWritten` includes what waits in node's queue.
 */
export function takenBytes(socket: Socket): number {
  const handle = countingHandle(socket);
  const { bytesWritten, writeQueueSize } = handle ?? {};
  return bytesWritten === undefined || writeQueueSize === undefined
    ? socket.bytesWritten - socket.writableLength
    : bytesWritten - writeQueueSize;
}

/**
 * The descriptor of a socket, which leads to its inode; null: node keeps it elsewhere, or the socket is closed. Gain: the peer's
 * acknowledgements are visible. Documented way: what the kernel takes counts.
 */
export function descriptorOf(socket: Socket): number | null {
  const descriptor = countingHandle(socket)?.fd;
  return typeof descriptor === 'number' && descriptor >= 0 ? descriptor : null;
}

/** Bytes that wait to be taken. TLS has its own count, which differs from that of `takenBytes`. */
export function waitingBytes(socket: Socket): number {
  const source = sourceOf(socket);
  const { _handle: handle } = source as unknown as CountedSocket;
  return source.writableLength + (handle?.writeQueueSize ?? 0);
}

/**
 * The TCP socket below a TLSSocket, or the socket itself. Gain: a TLS connection can be reset. Undefined: node keeps it elsewhere, and the
 * connection can only be closed. The end of TLS is missing in that case too, which most clients notice.
 */
export function transportOf(socket: Socket | RelayedSocket): Socket | undefined {
  const source = sourceOf(socket);
  return source instanceof TLSSocket ? (source as { readonly _parent?: Socket })._parent : source;
}

type ConnectingHandle = { readonly _handle?: { getpeername?(into: object): number } | null };

/**
 * Whether a connecting socket is connected. Gain: the answer in the same turn of the event loop. Documented way: `connect`, which comes in a
 * later turn, in which a server in this process would accept the connection.
 */
export function isConnected(socket: Socket): boolean {
  return (socket as unknown as ConnectingHandle)._handle?.getpeername?.({}) === 0;
}

/** V8 collects no feedback on a function before a few calls. */
const warmUpCalls = 50;

/**
 * Lets node create sockets at full speed; to be called once. net.Socket spreads its options and adds to the result. In V8 11.3 (Node 20)
 * objects from a fast spread do not share the hidden classes that they grow: the options of each socket get three of their own, and each
 * access to them misses its inline cache, about sixty times a connection. Options in dictionary mode turn that spread into a slow one for
 * good, whose results share their classes. Other versions of V8 lose nothing by it. With 48 clients that connect for each request
 * (point/48-close of scripts/bench), a point query took 98 µs of CPU instead of 128. Documented way: not to do it.
 */
export function easeSocketCreation(): void {
  const options: { readable: boolean; writable?: boolean; handle?: null } = {
    readable: false,
    writable: false,
    handle: null,
  };
  // Deleting a property that was not added last turns an object into a dictionary.
  delete options.writable;
  for (let n = 0; n < warmUpCalls; n += 1) new Socket(options as { readable: boolean }).destroy();
}

/**
 * A stream in place of an accepted socket, for a node whose parser cannot be detached. It reads nothing by itself: input is emitted as its
 * `data`. Writes, pauses, timeouts and the end are the socket's. HTTP servers take any Duplex with the event `connection` (documented).
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

  /** As a socket counts them, with bytes that wait. */
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

  /** Ends when everything has been written. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _read(): void {
    // The reader of the accepted socket emits the input.
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

/** Gives such streams to a server's listeners for `event`, in place of sockets. */
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
