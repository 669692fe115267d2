// What is known about a statement, and what a session needs before it may be sent on it.
// Must not know how it is sent, nor what becomes of it.
import { performance } from 'node:perf_hooks';
import { runTogether, statementCommand } from '../../shared/mysql/commands.ts';
import type { Classification } from '../../shared/sql/classify.ts';
import type { Statement as ScannedStatement } from '../../shared/sql/statements.ts';
import { proveAlive } from '../servers/pool/bounded.ts';
import type { Pool } from '../servers/pool/pool.ts';
import type { Session } from '../servers/pool/session.ts';
import type { StatementEffects } from './statement-effects.ts';

/** What is to be run, and what is known about it. */
export type Statement = {
  /** null: nothing to run, the session alone is wanted. */
  readonly sql: string | null;
  /** Killing it changes nothing, where the tables that it names are harmless. */
  readonly isRead: boolean;
  /** What the tables that it names may do beside. What else is said of it holds where that is harmless. */
  readonly effects: StatementEffects;
  /** One read without locks: all of its rows are of the moment at which it began. */
  readonly seesOneMoment: boolean;
  /** It reads what an earlier statement may have left in the session. */
  readonly needsFreshSession: boolean;
  /** It cannot have changed the session, as far as its text tells; the server's flags must agree. */
  readonly leavesSessionClean: boolean;
  /** It runs inside a READ ONLY transaction. */
  readonly isReadOnly: boolean;
  /** A number that statements like it share; null where it matters that it runs by itself. */
  readonly shape: number | null;
  /** After an error of MySQL's: whether the transaction is rolled back before anything is told. */
  readonly rollbackOnError: boolean;
  /** Whether the server is asked for its statistics once the statements have succeeded. */
  readonly asksServer: boolean;
  /** Reads with an equal one have the same reply, whoever runs them; null: it runs for its own request alone. */
  readonly coalescingKey: string | null;
  /** Of a long text what it was found to be: it is not read again at once. Null, or nothing: the text is short. */
  readonly analysis?: {
    readonly scanned: readonly ScannedStatement[];
    readonly classified: Classification;
  } | null;
};

/**
 * A session that lay idle for this long may be gone without our knowing: closed by the server in this very
 * moment (wait_timeout is a second at least), or forgotten by a firewall. It is asked before it is used.
 */
export const staleAfterMs = 500;

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
