// Loaded into the daemon's processes by NODE_OPTIONS=--import: a Node with other undocumented internals, whose documented behaviour is
// unchanged. With `?parser` its parser cannot be taken off a socket either. With `?descriptor` a server's descriptor is not visible.
import { OutgoingMessage } from 'node:http';
import { Server, Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';

type Method = (this: object, ...args: unknown[]) => unknown;
type Handle = { useUserBuffer?: (buffer: Buffer) => void };

/** Replaces `owner[name]` by the result of `change`. */
function replace(owner: object, name: string, change: (own: Method) => Method): void {
  const methods = owner as Record<string, Method>;
  const own = methods[name];
  if (own === undefined) throw new Error(`there is no ${name} any more`);
  methods[name] = change(own);
}

/** A head that writeHead has not made takes the body with it: nothing of it is sent. */
function loseOwnHeads(): void {
  const made = new WeakSet<object>();
  replace(
    OutgoingMessage.prototype,
    '_storeHeader',
    (own) =>
      function (...args) {
        made.add(this);
        return own.apply(this, args);
      },
  );
  replace(
    OutgoingMessage.prototype,
    '_send',
    (own) =>
      function (bytes, ...rest) {
        return own.call(this, made.has(this) ? bytes : '', ...rest);
      },
  );
}

/** Accepted sockets read into another buffer than the one they were given, and do not report the bytes that wait in them. */
function loseHandles(): void {
  replace(
    Server.prototype,
    'emit',
    (own) =>
      function (event, ...args) {
        const handle = event === 'connection' ? (args[0] as { _handle?: Handle })._handle : null;
        if (handle) changeHandle(handle);
        return own.call(this, event, ...args);
      },
  );
}

function changeHandle(handle: Handle): void {
  const own = handle.useUserBuffer;
  if (own === undefined) throw new Error('there is no useUserBuffer any more');
  handle.useUserBuffer = (buffer) => own.call(handle, Buffer.alloc(buffer.length));
  Object.defineProperty(handle, 'writeQueueSize', { value: undefined });
}

/** Only Node itself calls `_listen2`. */
function hideLegacyListen(): void {
  const legacy = Server.prototype as unknown as { _listen2?: Method };
  const own = legacy._listen2;
  if (own === undefined) throw new Error('there is no _listen2 any more');
  Object.defineProperty(legacy, '_listen2', {
    get: () => (new Error().stack?.split('\n')[2]?.includes('node:net') ? own : undefined),
  });
}

/** Hides the descriptors of listening servers. */
function loseDescriptors(): void {
  replace(
    Server.prototype,
    'emit',
    (own) =>
      function (event, ...args) {
        const { _handle: handle } = this as { _handle?: object };
        if (event === 'listening' && handle) Object.defineProperty(handle, 'fd', { value: -1 });
        return own.call(this, event, ...args);
      },
  );
}

const { search } = new URL(import.meta.url);
const isWorker = process.env.DBHTTPD_INSTANCE !== undefined;
if (!isMainThread && !isWorker && search === '?descriptor') loseDescriptors();
if (isMainThread && isWorker) {
  loseOwnHeads();
  loseHandles();
  hideLegacyListen();
  if (search === '?parser') Socket.prototype.listeners = () => [];
}
