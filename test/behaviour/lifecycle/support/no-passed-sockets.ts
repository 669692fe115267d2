// Loaded into the daemon's processes by NODE_OPTIONS=--import: a Node without the internals by which a listening descriptor is passed on.
// In workers, none listens on a passed unix socket. With `?descriptor`, the supervisor does not see a server's descriptor either.
import { Server } from 'node:net';
import { isMainThread } from 'node:worker_threads';

type Method = (this: object, ...args: unknown[]) => unknown;

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
  const servers = Server.prototype as unknown as { emit: Method };
  const own = servers.emit;
  servers.emit = function (this: object, ...args: unknown[]) {
    const { _handle: handle } = this as { readonly _handle?: object };
    if (args[0] === 'listening' && handle) Object.defineProperty(handle, 'fd', { value: -1 });
    return own.apply(this, args);
  };
}

const { search } = new URL(import.meta.url);
const isWorker = process.env.DBHTTPD_INSTANCE !== undefined;
if (!isMainThread && !isWorker && search === '?descriptor') loseDescriptors();
if (isMainThread && isWorker) hideLegacyListen();
