// The servers that a section may be served by: from `host`, `port` and `socket`, and their names in words.
// Must not know which of them serves, nor how that is found out.
import { isIP } from 'node:net';

/** One server of a section, by TCP, or by a unix socket where `socket` is set. */
export type Candidate = {
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
};

/** At least one. */
export type Candidates = readonly [Candidate, ...Candidate[]];

/** One item of `host`; `port` null: the key `port` says it. */
export type HostItem = { readonly host: string; readonly port: number | null };

/** One item or several: a name or an address, alone or with a port; else the problem, naming the item. */
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
  if (match === null) return 'must be a host name or an address, as db:3307 or [::1]:3307';
  const [, bracketed, name = '', digits] = match;
  if (bracketed !== undefined && isIP(bracketed) !== 6)
    return 'has no IPv6 address in its brackets';
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65535)) return 'must have a port from 1 to 65535';
  return { host: bracketed ?? name, port };
}

/** Only what looks like a host is repeated: a whole URL, put there by mistake, may hold a password. */
function quoteItem(text: string): string {
  return /^[\p{L}\p{N}._-]+(?::\d+)?$|^\[[\dA-Fa-f:.]*\](?::\d+)?$/u.test(text) ? ` (${text})` : '';
}

/** The servers that the keys `host`, `port` and `socket` name, in this order; a nameless one where they name none. */
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

/** The names of servers that stand there more than once, whatever the case of their letters. */
export function findRepeated(candidates: readonly Candidate[]): readonly string[] {
  const names = candidates.map((one) => formatCandidate(one));
  const keys = candidates.map(candidateKey);
  return names.filter((_, index) => keys.indexOf(keys[index] ?? '') < index);
}

/** Equal for candidates that are one server by what is written. */
export function candidateKey(candidate: Candidate): string {
  return candidate.socket ?? formatCandidate(candidate).toLowerCase();
}
