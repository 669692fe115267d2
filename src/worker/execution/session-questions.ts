// What is asked on a session after its statements, before it is given back.
// Must not know what is made of the answers.
import {
  fetchRows,
  fetchStatistics,
  runTogether,
  statementCommand,
} from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import type { ServerFacts } from './execution.ts';

/** ER_WARNING_NOT_COMPLETE_ROLLBACK */
const notAllUndone = '1196';

/** Whether the server says of its last ROLLBACK that tables without transactions were changed. Rejects when the connection is lost. */
export async function hasLeftSomething(connection: Connection): Promise<boolean> {
  const rows = await fetchRows(connection, 'SHOW WARNINGS');
  return rows.some(([, code]) => code === notAllUndone);
}

/**
 * Ends the transaction that a failed statement may have left open, and tells whether tables without transactions were changed in it.
 * Rejects when that cannot be said to be done.
 */
export async function rollBack(connection: Connection): Promise<{ readonly hasLeft: boolean }> {
  // A deadlock has rolled back before, and said so then.
  const hadLeft = await hasLeftSomething(connection);
  await runTogether(connection, [statementCommand('ROLLBACK', connection)]);
  return { hasLeft: hadLeft || (await hasLeftSomething(connection)) };
}

/** Rejects when the connection is lost. */
export async function askServer(connection: Connection): Promise<ServerFacts> {
  const statistics = await fetchStatistics(connection);
  return { statistics, serverVersion: connection.serverVersion };
}
