// Has node read a socket into one buffer that all of them share, as its option `onread` does for sockets that connect.
// Must not know what is read.
import { Socket, type SocketConstructorOpts } from 'node:net';

/** Node's own name for what `onread` sets: of sockets that are accepted it is documented nowhere, as of Node 20.20. */
type Internals = {
  [name: symbol]: unknown;
  readonly _handle?: { useUserBuffer?(buffer: Buffer): void; _consumed?: boolean };
};

/** What one read may bring, as in node's own parser. */
const shared = Buffer.allocUnsafeSlow(64 * 1024);

const onread = { buffer: shared, callback: () => true };
const probe = new Socket({ onread } as SocketConstructorOpts);
const nameOf = (description: string) =>
  Object.getOwnPropertySymbols(probe).find((symbol) => symbol.description === description);
const [bufferName, callbackName] = [nameOf('kBuffer'), nameOf('kBufferCb')];
probe.destroy();

/** Keeps node's parser from reading a socket by itself; to be called before node's own listener for connections is. */
export function keepFromParser(socket: Socket): void {
  const { _handle: handle } = socket as unknown as Internals;
  if (handle !== undefined) handle._consumed = true;
}

/**
 * Has `take` called with what is read, which is valid until it returns. Sockets whose insides are not as they are known
 * are read as documented: a buffer for each read, which takes 4 µs more of a small request.
 */
export function readInto(socket: Socket, take: (bytes: Buffer) => void): void {
  const known = socket as unknown as Internals;
  const handle = known._handle;
  if (bufferName === undefined || callbackName === undefined || !handle?.useUserBuffer) {
    socket.on('data', take);
    return;
  }
  known[bufferName] = shared;
  known[callbackName] = (length: number) => {
    take(shared.subarray(0, length));
    return true;
  };
  handle.useUserBuffer(shared);
}
