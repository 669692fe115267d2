// The kernel's tables of TCP connections (https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html).
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { isIPv4 } from 'node:net';

/** Both families: the second has IPv4 connections to an IPv6 socket. The files show this process's network namespace. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** About 27,000 connections. The rest of a table is not read. */
const maxTableBytes = 4 * 1024 ** 2;
const chunkBytes = 64 * 1024;
const established = '01';

/** The ends of a connection, as node's sockets tell them. */
export type Ends = {
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
};

/** The name of a connection in the tables; null: it is no open TCP connection. */
export function nameInTables({
  localAddress,
  localPort,
  remoteAddress,
  remotePort,
}: Ends): string | null {
  if (localAddress === undefined || remoteAddress === undefined) return null;
  if (localPort === undefined || remotePort === undefined) return null;
  return `${placeName(localAddress, localPort)} ${placeName(remoteAddress, remotePort)}`;
}

function placeName(address: string, port: number): string {
  const words = isIPv4(address) ? [bytesOf(address)] : wordsOf(address);
  // Each word of four bytes is printed as a number of this machine, which is little-endian.
  const text = words.map((word) => hex([...word].reverse())).join('');
  return `${text}:${hex([port >> 8, port & 0xff])}`;
}

function hex(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, '0').toUpperCase()).join('');
}

function bytesOf(dotted: string): number[] {
  return dotted.split('.').map(Number);
}

/** The four words of an IPv6 address (RFC 4291 section 2.2), without its zone. */
function wordsOf(address: string): number[][] {
  const [plain = ''] = address.split('%');
  const [head = '', tail] = plain.split('::');
  const before = groupsOf(head);
  const behind = tail === undefined ? [] : groupsOf(tail);
  const zeros = Array<number>(Math.max(0, 16 - before.length - behind.length)).fill(0);
  const bytes = [...before, ...zeros, ...behind];
  return [0, 4, 8, 12].map((at) => bytes.slice(at, at + 4));
}

function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return bytesOf(group);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

/** Whether the kernel has a connection as established at this moment, which is before its socket emits `connect`. */
export function isEstablished(ends: Ends): boolean {
  const name = nameInTables(ends);
  if (name === null) return false;
  return tables.some((table) => {
    const row = readFileSync(table, 'latin1').split(name, 2)[1];
    return row?.startsWith(` ${established} `) === true;
  });
}

/** Reads the send queues of connections, in bytes, by their names. Connections that are not found are missing. */
export type ReadSendQueues = (names: ReadonlySet<string>) => Promise<ReadonlyMap<string, number>>;

/** Reads the kernel's tables up to the last of the connections. Rejects if there are no tables. */
export async function readSendQueues(
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const table of tables) {
    if (found.size < names.size) await readTable(table, names, found);
  }
  return found;
}

async function readTable(
  path: string,
  names: ReadonlySet<string>,
  found: Map<string, number>,
): Promise<void> {
  const file = await open(path, 'r');
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let rest = '';
    for (let total = 0; total < maxTableBytes && found.size < names.size; ) {
      const { bytesRead } = await file.read(chunk, 0, chunkBytes, null);
      if (bytesRead === 0) return;
      total += bytesRead;
      rest = parseLines(rest + chunk.toString('latin1', 0, bytesRead), names, found);
    }
  } finally {
    await file.close();
  }
}

/** Parses the complete lines of a table, and returns the text behind the last one. Skips lines of another form. */
export function parseLines(
  text: string,
  names: ReadonlySet<string>,
  found: Map<string, number>,
): string {
  let from = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
    const [, local, remote, , queues = ''] = text.slice(from, end).trim().split(/\s+/, 5);
    from = end + 1;
    const name = `${local} ${remote}`;
    if (names.has(name) && /^[0-9A-F]{8}:/.test(queues)) {
      found.set(name, Number.parseInt(queues, 16));
    }
  }
  return text.slice(from).slice(-chunkBytes);
}
