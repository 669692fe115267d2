// The demo's second database, in which its account may create tables, and the table of idempotency keys there.
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../src/shared/database/idempotency-table.ts';

const database = 'play';

/** The section's `idempotency_table`. */
export const idempotencyTable = `${database}.request_keys`;

/** Creates the empty database, whatever it held before, and the rights of the account `user` in it. */
export function createPlayground(user: string): string {
  const grants = ['localhost', '127.0.0.1'].map(
    (host) => `grant all on ${database}.* to '${user}'@'${host}';`,
  );
  return [
    `drop database if exists ${database};`,
    `create database ${database} character set utf8mb4;`,
    describeCreation(parseIdempotencyTable(idempotencyTable, database)),
    ...grants,
  ].join('\n');
}
