// Where HTTP is served: the text of `listen` in, an address out, and back.
// Must not know who binds it.
import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';

/** Where HTTP is served. Port 0 lets the system choose. `host` null: every address. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly host: string | null; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

// sun_path has 108 bytes, one of them NUL; a socket is bound under a longer temporary name first.
const mostPathBytes = 96;

/** Parses `address:port`, `[v6]:port`, `*:port`, `localhost:port` or an absolute path; else the problem. */
export function parseListenAddress(text: string): ListenAddress | string {
  if (text.startsWith('/')) return parsePath(text);
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) return 'must be address:port or an absolute path';
  const host = match[1] ?? match[2] ?? '';
  if (host === '*') return { kind: 'tcp', host: null, port };
  if (host === 'localhost') return { kind: 'tcp', host: '127.0.0.1', port };
  const version = isIP(host);
  if (version === 0) return 'must name an IP address, `*` or `localhost` before the port';
  if ((version === 6) !== (match[1] !== undefined))
    return 'needs brackets around IPv6 addresses only';
  return { kind: 'tcp', host, port };
}

function parsePath(path: string): ListenAddress | string {
  if (!isAbsolute(path) || path.endsWith('/')) return 'must be the absolute path of a socket';
  if (Buffer.byteLength(path) > mostPathBytes)
    return `must be a path of at most ${mostPathBytes} bytes`;
  return { kind: 'unix', path };
}

/** True when only processes of this machine can connect. */
export function isLocal(address: ListenAddress): boolean {
  if (address.kind === 'unix') return true;
  if (address.host === null) return false;
  return /^(?:::ffff:)?127\./i.test(address.host) || /^(?:0{0,4}:){2,7}0{0,3}1$/.test(address.host);
}

/** True when a `Host` names this machine alone, whatever a name server says: nobody else can be made to mean it. */
export function isLoopbackName(name: string): boolean {
  if (name.startsWith('[')) return isLocal({ kind: 'tcp', host: name.slice(1, -1), port: 0 });
  return /^(?:.+\.)?localhost$/i.test(name) || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** The address as one would write it in `listen`. */
export function formatListenAddress(address: ListenAddress): string {
  if (address.kind === 'unix') return address.path;
  if (address.host === null) return `*:${address.port}`;
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}
