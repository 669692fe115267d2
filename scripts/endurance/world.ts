// The surroundings of every run: a private MariaDB with tables, and checks for leftovers at the end.
import { existsSync } from 'node:fs';
import { type Database, startDatabase } from '../../test/support/database/mariadb.ts';
import { gone, isAlive, signal } from '../../test/support/processes.ts';
import { tables } from './questions.ts';

/** Starts a private server with the run's tables. The caller must stop it. */
export async function openDatabase(): Promise<Database> {
  const database = await startDatabase({ own: true });
  await database.query(tables);
  return database;
}

/** Counts the connections to the run's database, except the one that counts. */
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

/** A running gateway. */
export type Running = {
  readonly pid: number;
  readonly workers: () => readonly number[];
  readonly pidfile: string;
};

/** Stops a gateway as an operator does. Resolves to what is left then, as text. */
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
