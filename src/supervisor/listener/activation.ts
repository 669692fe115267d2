// Systemd's socket activation: this process serves an inherited listening socket in place of its own.
import { closeSync, fstatSync, readFileSync } from 'node:fs';
import { endianness } from 'node:os';
import type { ListenAddress } from '../../shared/config/addresses.ts';
import type { Bound } from './listener.ts';

const firstDescriptor = 3;

/**
 * Removes the variables of sd_listen_fds(3) from the environment, so that no forked process uses them, and returns the number of
 * descriptors as it is written there. Null: none were passed to this process.
 */
export function takeActivation(env: NodeJS.ProcessEnv, pid: number): string | null {
  const { LISTEN_PID: meant, LISTEN_FDS: count } = env;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES', 'LISTEN_PIDFDID']) {
    delete env[name];
  }
  return meant !== `${pid}` || count === undefined || count === '0' ? null : count;
}

/** The socket of the first descriptor, or why it cannot be served. The caller closes this process's copy. */
export function adoptListener(count: string): Bound {
  if (count !== '1') {
    return { ok: false, reason: `LISTEN_FDS is ${count}: one socket can be served` };
  }
  const address = addressOf(firstDescriptor);
  if (address === null) {
    return { ok: false, reason: `descriptor ${firstDescriptor} is not a listening stream socket` };
  }
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(firstDescriptor);
    isOpen = false;
  };
  return { ok: true, listener: { fd: firstDescriptor, address, outlives: true, close } };
}

/** The address at which a descriptor listens, by the kernel's tables: calling listen(2) to find out would make any socket listen. */
function addressOf(fd: number): ListenAddress | null {
  const inode = inodeOf(fd);
  if (inode === null) return null;
  const table = (name: string) => readFileSync(`/proc/self/net/${name}`, 'utf8');
  return (
    findTcp(table('tcp'), inode) ??
    // A kernel without IPv6 has no such table.
    findTcp(orNothing(() => table('tcp6')) ?? '', inode) ??
    findUnix(table('unix'), inode)
  );
}

function inodeOf(fd: number): string | null {
  const stats = orNothing(() => fstatSync(fd));
  return stats?.isSocket() === true ? `${stats.ino}` : null;
}

function orNothing<Value>(get: () => Value): Value | null {
  try {
    return get();
  } catch {
    return null;
  }
}

const tcpListen = '0A';

/** Finds a listening socket in /proc/net/tcp or tcp6 (proc(5)). Exported for its test. */
export function findTcp(table: string, inode: string): ListenAddress | null {
  for (const line of table.split('\n')) {
    const [, local = '', , state, , , , , , own] = line.trim().split(/\s+/);
    if (own !== inode || state !== tcpListen) continue;
    const [address = '', port = ''] = local.split(':');
    return { kind: 'tcp', host: decodeHost(address), port: Number.parseInt(port, 16) };
  }
  return null;
}

/** Decodes words of 32 bits in this machine's byte order. Null: every address. */
function decodeHost(hex: string): string | null {
  const bytes = Buffer.from(hex, 'hex');
  if (endianness() === 'LE') bytes.swap32();
  if (bytes.every((byte) => byte === 0)) return null;
  if (bytes.length === 4) return [...bytes].join('.');
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

const acceptsConnections = 0x10000;
const streamType = '0001';

/** Finds a listening stream socket in /proc/net/unix (proc(5)). Exported for its test. */
export function findUnix(table: string, inode: string): ListenAddress | null {
  for (const line of table.split('\n')) {
    const found = /^\w+: \w+ \w+ (\w+) (\w+) \w+ +(\d+) ?(.*)$/.exec(line);
    if (found?.[3] !== inode || found[2] !== streamType) continue;
    const flags = Number.parseInt(found[1] ?? '', 16);
    return (flags & acceptsConnections) === 0 ? null : { kind: 'unix', path: found[4] ?? '' };
  }
  return null;
}
