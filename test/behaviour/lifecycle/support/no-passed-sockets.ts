// Loaded into the daemon's processes by NODE_OPTIONS=--import: a Node without the internals by which a listening descriptor is passed on.
// In workers, none listens on a passed unix socket. With `?table`, the supervisor cannot find a server's descriptor in the kernel's table of sockets.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
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

/** Hides the kernel's table of sockets, as a system without /proc does. */
function hideSocketTable(): void {
  const read = fs.readFileSync;
  const hiding = (...[path, options]: Parameters<typeof read>) => {
    if (path === '/proc/self/net/tcp') throw new Error(`ENOENT: no such file, open '${path}'`);
    return read(path, options);
  };
  fs.readFileSync = hiding as typeof read;
  syncBuiltinESMExports();
}

const { search } = new URL(import.meta.url);
const isWorker = process.env.DBHTTPD_INSTANCE !== undefined;
if (!isMainThread && !isWorker && search === '?table') hideSocketTable();
if (isMainThread && isWorker) hideLegacyListen();
