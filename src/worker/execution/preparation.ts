// What is known about a statement, and what a session needs before it may be sent on it.
// Must not know how it is sent, nor what becomes of it.
import { performance } from 'node:perf_hooks';
import { runTogether, statementCommand } from '../../shared/mysql/commands.ts';
import { proveAlive } from '../servers/pool/connecting.ts';
import type { Pool } from '../servers/pool/pool.ts';
import { type Session, staleAfterMs } from '../servers/pool/session.ts';
import type { Statement } from './work.ts';

/**
 * Whether `makeReady` has something to do; under load, for ordinary statements, it has not.
 * @param needsFresh the statement may read what was left in the session
 */
export function needsPreparation(
  session: Session,
  { isReadOnly }: Statement,
  needsFresh: boolean,
  now: number,
): boolean {
  return now - session.aliveAt > staleAfterMs || isReadOnly || (needsFresh && !session.isFresh);
}

/** Makes a granted session ready. @param isReadOnly what follows runs in a READ ONLY transaction. Rejects when the connection is not to be used. */
export async function makeReady(
  pool: Pool,
  session: Session,
  isReadOnly: boolean,
  needsFresh: boolean,
): Promise<void> {
  if (needsFresh && !session.isFresh) await pool.refresh(session);
  else if (performance.now() - session.aliveAt > staleAfterMs) {
    await proveAlive(session.connection);
  }
  if (!isReadOnly) return;
  session.isFresh = false;
  const begin = statementCommand('START TRANSACTION READ ONLY', session.connection);
  await runTogether(session.connection, [begin]);
}
