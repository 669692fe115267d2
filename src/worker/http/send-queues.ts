// How many bytes of what the kernel took for a socket its peer has not acknowledged: from /proc/net/tcp, one read for all that ask.
// A third of a send buffer of megabytes drains before a socket can be written to again: what the kernel takes shows a slow reader's
// progress every minute or more, what the peer acknowledges shows it at once. The kernel has no cheaper way that Node can ask.
import { open } from 'node:fs/promises';

/** Both families: a connection of IPv4 to a socket of IPv6 is in the second. The files show this process's network namespace. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** About 27,000 connections. What stands behind is not looked for. */
const maxTableBytes = 4 * 1024 ** 2;
const chunkBytes = 64 * 1024;
/** Questions within this time share one read. */
const gatherMs = 50;

/** Reads the send queues of sockets, in bytes, by their inodes. A socket that is not found is missing. */
export type ReadSendQueues = (inodes: ReadonlySet<number>) => Promise<ReadonlyMap<number, number>>;

/** The send queues of one worker's sockets. */
export class SendQueues {
  readonly #read: ReadSendQueues;
  #asked = new Map<number, ((bytes: number | null) => void)[]>();
  #isBusy = false;

  constructor(read: ReadSendQueues = readSendQueues) {
    this.#read = read;
  }

  /**
   * Resolves with the bytes that a socket's peer has not acknowledged; null: it cannot be told, for it is no TCP socket of this
   * network namespace, or there is no /proc. Never rejects.
   */
  unacknowledged(inode: number): Promise<number | null> {
    return new Promise((resolve) => {
      const others = this.#asked.get(inode);
      if (others === undefined) this.#asked.set(inode, [resolve]);
      else others.push(resolve);
      if (this.#isBusy) return;
      this.#isBusy = true;
      setTimeout(() => void this.#answer(), gatherMs);
    });
  }

  async #answer(): Promise<void> {
    const asked = this.#asked;
    this.#asked = new Map();
    const found = await this.#read(new Set(asked.keys())).catch(() => null);
    for (const [inode, resolvers] of asked) {
      for (const resolve of resolvers) resolve(found?.get(inode) ?? null);
    }
    this.#isBusy = this.#asked.size > 0;
    if (this.#isBusy) setTimeout(() => void this.#answer(), gatherMs);
  }
}

/** Reads the kernel's tables up to the last socket that is asked for. Rejects where there are none. */
export async function readSendQueues(
  inodes: ReadonlySet<number>,
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>();
  for (const table of tables) {
    if (found.size < inodes.size) await readTable(table, inodes, found);
  }
  return found;
}

async function readTable(
  path: string,
  inodes: ReadonlySet<number>,
  found: Map<number, number>,
): Promise<void> {
  const file = await open(path, 'r');
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let rest = '';
    for (let total = 0; total < maxTableBytes && found.size < inodes.size; ) {
      const { bytesRead } = await file.read(chunk, 0, chunkBytes, null);
      if (bytesRead === 0) return;
      total += bytesRead;
      rest = parseLines(rest + chunk.toString('latin1', 0, bytesRead), inodes, found);
    }
  } finally {
    await file.close();
  }
}

/**
 * Takes the whole lines of a table apart, and returns what stands behind the last of them. Lines that are none are left out
 * (https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html).
 */
export function parseLines(
  text: string,
  inodes: ReadonlySet<number>,
  found: Map<number, number>,
): string {
  let from = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
    const [, , , , queues = '', , , , , inode = ''] = text.slice(from, end).trim().split(/\s+/, 10);
    from = end + 1;
    const wanted = Number(inode);
    if (!inodes.has(wanted)) continue;
    const bytes = Number.parseInt(queues, 16);
    if (/^[0-9A-F]{8}:/.test(queues)) found.set(wanted, bytes);
  }
  return text.slice(from).slice(-chunkBytes);
}
