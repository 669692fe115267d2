// Addresses: the MySQL servers of a section, from `host`, `port` and `socket`, and the place where HTTP is served, from `listen`.
import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';

/** One server of a section. If `socket` is set, it is reached by the unix socket, or else by TCP. */
export type Candidate = {
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
};

/** The servers of a section. */
export type Candidates = readonly [Candidate, ...Candidate[]];

/** One item of `host`. `port` null: the key `port` applies. */
export type HostItem = { readonly host: string; readonly port: number | null };

/** Parses a comma-separated list of names and addresses, each with or without a port. Returns the problem if an item is wrong. */
export function parseHosts(text: string): readonly HostItem[] | string {
  const items: HostItem[] = [];
  for (const [index, part] of text.split(',').entries()) {
    const item = parseHost(part.trim());
    if (typeof item === 'string') return `item ${index + 1}${quoteItem(part.trim())} ${item}`;
    items.push(item);
  }
  return items;
}

function parseHost(text: string): HostItem | string {
  if (text === '') return 'is empty';
  if (isIP(text) === 6) return { host: text, port: null };
  const match = /^(?:\[([^\]]*)\]|([^\s:[\]/@]+))(?::(\d+))?$/.exec(text);
  if (match === null) return 'must be a host name or an address, such as db:3307 or [::1]:3307';
  const [, bracketed, name = '', digits] = match;
  if (bracketed !== undefined && isIP(bracketed) !== 6)
    return 'has no IPv6 address in its brackets';
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65535)) return 'must have a port from 1 to 65535';
  return { host: bracketed ?? name, port };
}

/** Repeats an item only if it looks like a host: a URL that was put there by mistake may contain a password. */
function quoteItem(text: string): string {
  return /^[\p{L}\p{N}._-]+(?::\d+)?$|^\[[\dA-Fa-f:.]*\](?::\d+)?$/u.test(text) ? ` (${text})` : '';
}

/** The servers that the keys `host`, `port` and `socket` name, in the order of `host`. Without any, one server without a name. */
export function candidatesOf(
  hosts: readonly HostItem[] | null,
  port: number,
  socket: string | null,
): Candidates {
  const [first, ...others] = (hosts ?? [{ host: '', port: null }]).map((item) =>
    Object.freeze({ host: item.host, port: item.port ?? port, socket }),
  );
  return Object.freeze([first ?? { host: '', port, socket }, ...others] as const);
}

/** The name of a server in logs, labels and --check: `10.0.0.1:3306`, `[::1]:3306`, or its socket's path. */
export function formatCandidate({ host, port, socket }: Candidate): string {
  return socket ?? `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The names of servers that occur more than once, without regard to case. */
export function findRepeated(candidates: readonly Candidate[]): readonly string[] {
  const names = candidates.map((one) => formatCandidate(one));
  const keys = candidates.map(candidateKey);
  return names.filter((_, index) => keys.indexOf(keys[index] ?? '') < index);
}

/** A key that is equal for two spellings of the same server. */
export function candidateKey(candidate: Candidate): string {
  return candidate.socket ?? formatCandidate(candidate).toLowerCase();
}

/** The address at which HTTP is served. Port 0 lets the system choose. `host` null: every address. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly host: string | null; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

// sun_path has 108 bytes, one of them NUL. A socket is first bound under a longer temporary name.
const maxPathBytes = 96;

/** Parses `address:port`, `[v6]:port`, `*:port`, `localhost:port` or an absolute path. Returns the problem if it is none of them. */
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
  if (Buffer.byteLength(path) > maxPathBytes)
    return `must be a path of at most ${maxPathBytes} bytes`;
  return { kind: 'unix', path };
}

/** Whether only processes of this machine can connect. */
export function isLocal(address: ListenAddress): boolean {
  if (address.kind === 'unix') return true;
  if (address.host === null) return false;
  return /^(?:::ffff:)?127\./i.test(address.host) || /^(?:0{0,4}:){2,7}0{0,3}1$/.test(address.host);
}

/** Whether a `Host` can only mean this machine, whatever a name server says. */
export function isLoopbackName(name: string): boolean {
  if (name.startsWith('[')) return isLocal({ kind: 'tcp', host: name.slice(1, -1), port: 0 });
  return /^(?:.+\.)?localhost$/i.test(name) || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** The address as it is written in `listen`. */
export function formatListenAddress(address: ListenAddress): string {
  if (address.kind === 'unix') return address.path;
  if (address.host === null) return `*:${address.port}`;
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}
