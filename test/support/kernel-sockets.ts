// Connections to a port of the loopback address in the kernel's table: their process, and their unread bytes.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The listening side's end of a connection; `inode` is 0 until a process has accepted it. */
export type ServerSocket = {
  readonly clientPort: number;
  readonly inode: string;
  readonly unreadBytes: number;
};

const listening = '0A';

/** Parses /proc/net/tcp: the connections whose local port is `port`. */
export function parseSockets(table: string, port: number): ServerSocket[] {
  // The table has thousands of lines where much was closed a moment ago: most are not worth being taken apart.
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  return parseLines(table, ending).flatMap(({ local, remote, state, unreadBytes, inode }) =>
    local !== port || state === listening ? [] : [{ clientPort: remote, inode, unreadBytes }],
  );
}

/** The connections to `port` now. */
export function serverSockets(port: number): ServerSocket[] {
  return parseSockets(readTable(), port);
}

/** The clients' ports of those connections to `port` that a process holds. */
export function clientPortsOf(pid: number, port: number): Set<number> {
  const held = inodesOf(pid);
  const own = serverSockets(port).filter(({ inode }) => held.has(inode));
  return new Set(own.map(({ clientPort }) => clientPort));
}

/** The ports of IPv4 at which a process listens, or holds the socket at which others do. */
export function listeningPorts(pid: number): number[] {
  const held = inodesOf(pid);
  return parseLines(readTable(), ` ${listening} `)
    .filter(({ state, inode }) => state === listening && held.has(inode))
    .map(({ local }) => local);
}

const readTable = () => readFileSync('/proc/net/tcp', 'latin1');

/** The lines of the table that contain `text`, taken apart. */
function parseLines(table: string, text: string) {
  const lines = table.split('\n').filter((line) => line.includes(text));
  return lines.map((line) => {
    const [, local = '', remote = '', state, queues = '', , , , , inode = '0'] = line
      .trim()
      .split(/\s+/);
    const unreadBytes = Number.parseInt(queues.split(':')[1] ?? '', 16);
    return { local: portOf(local), remote: portOf(remote), state, unreadBytes, inode };
  });
}

function portOf(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(':') + 1), 16);
}

function inodesOf(pid: number): Set<string> {
  const inodes = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      // Closed since it was listed.
      return [];
    }
  });
  return new Set(inodes);
}
