// The steps of a failover: the primary is struck, a replica is promoted or the primary comes back by itself, and at last it is there again.
import { setTimeout as pause } from 'node:timers/promises';
import type { ReplicatedSet } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';

/** The strike against the primary. `restarted`: it crashes and comes back as primary, without a promotion. */
export const strikes = ['killed', 'frozen', 'read-only', 'restarted'] as const;
export type Strike = (typeof strikes)[number];

/** A failover that is over; times are performance.now()'s. */
export type Struck = {
  readonly struckMs: number;
  readonly promotedMs: number;
  /** The earlier primary; null if it is in use again. */
  readonly former: ReplicationServer | null;
};

/** Strikes the primary. After this many milliseconds it promotes the replica that has received most. */
export async function failOver(set: ReplicatedSet, how: Strike, afterMs: number): Promise<Struck> {
  const former = set.primary();
  const struckMs = performance.now();
  await strike(former, how);
  await pause(afterMs);
  if (how === 'restarted') {
    await restartWritable(former);
    return { struckMs, promotedMs: performance.now(), former: null };
  }
  // An operator that makes a primary read-only waits: it still answers.
  if (how === 'read-only') await set.waitForCatchUp();
  const heir = await chooseHeir(set);
  return { struckMs, promotedMs: await set.promote(heir), former };
}

/** The former primary is back and takes writes, since it does not know of the failover. */
export async function bringBack(former: ReplicationServer): Promise<number> {
  const state = former.state();
  switch (state) {
    case 'killed':
      await restartWritable(former);
      break;
    case 'frozen':
      former.thaw();
      break;
    case 'running':
      await former.setReadOnly(false);
      break;
    default:
      throw new Error(`no such state: ${state satisfies never}`);
  }
  return performance.now();
}

/** Which replica was promoted depends on what each has received; one that was begun as a replica starts read-only. */
async function restartWritable(former: ReplicationServer): Promise<void> {
  await former.restart();
  await former.setReadOnly(false);
}

async function strike(primary: ReplicationServer, how: Strike): Promise<void> {
  switch (how) {
    case 'killed':
    case 'restarted':
      return primary.kill();
    case 'frozen':
      return primary.freeze();
    case 'read-only':
      return primary.setReadOnly(true);
    default:
      throw new Error(`no such strike: ${how satisfies never}`);
  }
}

/** Any other replica would lack transactions of this one, and this one would have transactions that the new primary lacks. */
async function chooseHeir(set: ReplicatedSet): Promise<ReplicationServer> {
  const replicas = set.replicas().filter((server) => server.state() === 'running');
  const received = await Promise.all(
    replicas.map(async (server) => {
      await server.query('stop slave io_thread');
      const [status] = await server.query('show slave status');
      return { server, count: countOf(String(status?.Gtid_IO_Pos ?? '')) };
    }),
  );
  const [first] = received.sort((one, other) => other.count - one.count);
  if (first === undefined) throw new Error('no replica runs');
  return first.server;
}

/** The number of transactions of a position, over its domains. */
function countOf(position: string): number {
  return position
    .split(',')
    .map((gtid) => Number(gtid.split('-')[2] ?? 0))
    .reduce((sum, count) => sum + count, 0);
}
