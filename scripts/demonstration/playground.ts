// The demo's second database, in which its account may create tables, with the table of idempotency keys and that of a named statement.
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../src/shared/database/idempotency-table.ts';

const database = 'play';

/** The section's `idempotency_table`. */
export const idempotencyTable = `${database}.request_keys`;

/** The statement `record_visit` writes to it (named/visits.sql). */
const createVisits = `create table ${database}.visit (
  id bigint unsigned auto_increment primary key,
  place int unsigned not null,
  note varchar(200),
  visited_at timestamp not null default current_timestamp,
  key (place)
);`;

/** Creates the database with its own tables only, whatever it held before, and the rights of the account `user` in it. */
export function createPlayground(user: string): string {
  const grants = ['localhost', '127.0.0.1'].map(
    (host) => `grant all on ${database}.* to '${user}'@'${host}';`,
  );
  return [
    `drop database if exists ${database};`,
    `create database ${database} character set utf8mb4;`,
    describeCreation(parseIdempotencyTable(idempotencyTable, database)),
    createVisits,
    ...grants,
  ].join('\n');
}
