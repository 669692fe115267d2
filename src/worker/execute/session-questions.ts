// What is asked on a session after its statements, before it is given back.
// Must not know what is made of the answers.
import { fetchStatistics, runTogether, statementCommand } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import type { ServerFacts } from './outcome.ts';

/** Ends the transaction that a failed statement may have left open. Rejects when that cannot be said to be done. */
export function rollBack(connection: Connection): Promise<void> {
  return runTogether(connection, [statementCommand('ROLLBACK', connection)]);
}

/** Rejects when the connection is lost. */
export async function askServer(connection: Connection): Promise<ServerFacts> {
  const statistics = await fetchStatistics(connection);
  return { statistics, serverVersion: connection.serverVersion };
}
