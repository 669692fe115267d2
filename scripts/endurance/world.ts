// What every run takes place in: a private MariaDB with tables, and where to look for what is left at the end.
import { existsSync } from 'node:fs';
import { type Database, startDatabase } from '../../test/support/database/mariadb.ts';
import { gone, isAlive, signal } from '../../test/support/processes.ts';
import { tables } from './questions.ts';

/** Starts a server of the run's own, with its tables. The caller must stop it. */
export async function openDatabase(): Promise<Database> {
  const database = await startDatabase({ own: true });
  await database.query(tables);
  return database;
}

/** How many connections there are to the run's database, beside this question's own. */
export async function countConnections(database: Database): Promise<number> {
  const [row] = await database.query(
    `select count(*) as n from information_schema.processlist
     where db = database() and id <> connection_id()`,
  );
  return Number(row?.n);
}

/** Rows of `written` by id. */
export async function countWritten(database: Database): Promise<ReadonlyMap<number, number>> {
  const rows = await database.query('select id, count(*) as n from written group by id');
  return new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
}

/** What is known of a gateway that runs. */
export type Running = {
  readonly pid: number;
  readonly workers: () => readonly number[];
  readonly pidfile: string;
};

/** Stops a gateway as an operator does; what is left then, in words. */
export async function stopAndLook(gateway: Running, database: Database): Promise<string[]> {
  const processes = [gateway.pid, ...gateway.workers()];
  signal(gateway.pid, 'SIGTERM');
  await gone(gateway.pid, 45_000);
  const left = processes.filter(isAlive).map((pid) => `process ${pid}`);
  if (existsSync(gateway.pidfile)) left.push('the pidfile');
  const connections = await countConnections(database);
  if (connections > 0) left.push(`${connections} connections at the database`);
  return left;
}
