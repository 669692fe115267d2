// Listening sockets in the kernel's tables (proc(5)): which inodes there are at an address.
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { nameInTables } from './tcp-table.ts';

const listening = '0A';
const unixTable = '/proc/self/net/unix';

/** The inodes of the TCP sockets that listen at this address and port. */
export function inodesOfListener({ address, family, port }: AddressInfo): readonly string[] {
  const isIPv6 = family === 'IPv6';
  const from = { remoteAddress: isIPv6 ? '::' : '0.0.0.0', remotePort: 0 };
  const name = nameInTables({ localAddress: address, localPort: port, ...from });
  return linesOf(isIPv6 ? '/proc/self/net/tcp6' : '/proc/self/net/tcp').flatMap((line) => {
    const [, local, remote, state, , , , , , inode] = line.trim().split(/\s+/, 10);
    return inode !== undefined && state === listening && `${local} ${remote}` === name
      ? [inode]
      : [];
  });
}

/** The inodes of the unix sockets that were bound to this path, which may have been renamed or removed since. */
export function inodesOfUnixSocket(path: string): readonly string[] {
  return linesOf(unixTable).flatMap((line) => {
    const [, inode, bound] = /^(?:\S+ +){6}(\d+) (.+)$/.exec(line) ?? [];
    return inode !== undefined && bound === path ? [inode] : [];
  });
}

function linesOf(table: string): readonly string[] {
  return readFileSync(table, 'utf8').split('\n');
}
