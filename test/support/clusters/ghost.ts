// A ghost: a transaction that the old primary had acknowledged and one replica holds, while the new primary lacks it.
import { eventually } from '../eventually.ts';
import { type ReplicatedSet, waitForPosition } from './replication.ts';
import type { ReplicationServer } from './replication-server.ts';

/** The situation after the failover. */
export type Ghost = {
  /** The position of the transaction that was lost. */
  readonly position: string;
  /** Follows the new primary by its settings, holds what that one lacks, and gets nothing from it any more. */
  readonly holder: ReplicationServer;
  readonly promoted: ReplicationServer;
  /** Gone, and holds the lost transaction too. */
  readonly former: ReplicationServer;
};

/** MariaDB's error for a replica that requests a position which the primary does not have. */
const fatalErrorOfDump = 1236;

/**
 * Runs a write that reaches one replica only, kills the primary, promotes the other replica, and runs a write there. Resolves once the holder
 * has been refused. Needs a set with `strict` and two replicas that have caught up.
 */
export async function makeGhost(
  set: ReplicatedSet,
  writes: { readonly lost: string; readonly after: string },
): Promise<Ghost> {
  const former = set.primary();
  const [promoted, holder] = set.replicas();
  if (promoted === undefined || holder === undefined) throw new Error('a ghost needs two replicas');
  await set.waitForCatchUp();
  await promoted.query('stop slave io_thread');
  await former.query(writes.lost);
  const position = await former.position();
  await waitForPosition(holder, position);
  await former.kill();
  await set.promote(promoted);
  await promoted.query(writes.after);
  await eventually('the holder is refused', async () => {
    const [status] = await holder.query('show slave status');
    return Number(status?.Last_IO_Errno) === fatalErrorOfDump;
  });
  return { position, holder, promoted, former };
}
