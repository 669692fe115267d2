// Measurements for tests of long replies: how far a process's memory grows, and whether MySQL waits for a reader.
import { readFileSync, writeFileSync } from 'node:fs';
import type { Database } from './database/mariadb.ts';
import { eventually } from './eventually.ts';

/** A statement counts as held back if it is unchanged this many times in a row, at this distance. */
const looksAlike = 25;
const lookMs = 20;

/** The highest, in bytes, that the memory of process `pid` gets while `work` lasts, above what it was before. */
export async function growthOf(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = memoryOf(pid, 'VmRSS');
  // 5 makes the kernel forget the high-water mark so far (proc(5), clear_refs).
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  await work();
  return memoryOf(pid, 'VmHWM') - before;
}

function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
}

/**
 * More bytes than fit in the kernel's buffers of the two connections between MySQL and a client, and in the gateway: MySQL must wait before
 * it has sent that many to a reader that takes nothing. On some machines a buffer may grow to 32 MiB.
 */
export function bytesBeyondBuffers(): number {
  const largest = (kind: 'rmem' | 'wmem') =>
    Number(readFileSync(`/proc/sys/net/ipv4/tcp_${kind}`, 'latin1').split('\t')[2]);
  const inTheGateway = 10 * 1024 ** 2;
  return 2 * (largest('rmem') + largest('wmem')) + inTheGateway;
}

/** The statements of this database that read from `table` now: the connection, and what the server does for it. */
export async function readersOf(
  database: Database,
  table: string,
): Promise<readonly { readonly id: unknown; readonly state: unknown }[]> {
  const rows = await database.query(
    'select id, state from information_schema.processlist where db = ? and info like ? and info not like ?',
    [database.name, `%from ${table}%`, '%processlist%'],
  );
  return rows.map(({ id, state }) => ({ id, state }));
}

/** Resolves once MySQL can write no more of the one statement that reads from `table`: its reader takes nothing. */
export async function heldBack(database: Database, table: string): Promise<void> {
  let seen = '';
  let alike = 0;
  const isStill = async () => {
    const [one] = await readersOf(database, table);
    const now = `${one?.id} ${one?.state}`;
    const isWriting = one !== undefined && /writing|send/i.test(String(one.state));
    alike = isWriting && now === seen ? alike + 1 : 0;
    seen = now;
    return alike === looksAlike;
  };
  try {
    await eventually('the server waits for its reader', isStill, { everyMs: lookMs });
  } catch (cause) {
    throw new Error(`the server does not wait for its reader; at last: ${seen}`, { cause });
  }
}
