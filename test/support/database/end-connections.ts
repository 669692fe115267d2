// Ends the connections of an account to a server: its gateways have to connect again.
import type { Database } from './mariadb.ts';

/** @param besides a further condition on rows of the process list */
export async function endConnections(
  database: Pick<Database, 'query'>,
  user: string,
  besides = 'true',
): Promise<void> {
  const sql = `select id from information_schema.processlist where user = '${user}' and ${besides}`;
  for (const { id } of await database.query(sql)) {
    // The connection may have ended meanwhile.
    await database.query(`kill ${id}`).catch(() => undefined);
  }
}
