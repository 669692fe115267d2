// The promise of nullability: in a thousand queries drawn at random, no column that is called not null has a NULL in it.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import {
  type DescribedStatement,
  describeStatements,
} from '../../../src/shared/database/named-columns.ts';
import { fetchRows, RefusedError } from '../../../src/shared/mysql/commands.ts';
import type { Connection } from '../../../src/shared/mysql/connection.ts';
import { parseFile } from '../../../src/shared/named/parse-file.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openWireConnection } from '../../support/database/wire-connection.ts';
import { NullQueries, nullTables } from '../../support/null-queries.ts';
import { cases, seed } from '../../support/property.ts';
import { createRandom } from '../../support/random.ts';

let database: Database;
let connection: Connection;
before(async () => {
  database = await startDatabase();
  connection = await openWireConnection(database);
  await fetchRows(connection, "set session sql_mode = ''");
  for (const sql of nullTables) await fetchRows(connection, sql);
});
after(async () => {
  connection?.destroy(new Error('the tests are over'));
  await database?.stop();
});

async function describe(queries: readonly string[]): Promise<readonly DescribedStatement[]> {
  const text = queries.map((sql, at) => `-- name: q${at} :many\n-- for: *\n${sql};\n`).join('\n');
  const parsed = parseFile(text, 'drawn.sql', { hasIdempotencyTable: false });
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return await describeStatements(connection, parsed.statements, () => null);
}

/** The rows; null: the server refuses the query. */
async function run(sql: string): Promise<readonly (readonly (string | null)[])[] | null> {
  try {
    return await fetchRows(connection, sql);
  } catch (error) {
    if (error instanceof RefusedError) return null;
    throw error;
  }
}

/** Queries about which the server is asked at once. */
const atOnce = 50;

test('no column that is called not null has a NULL in it', async () => {
  const drawn = new NullQueries(createRandom(seed));
  const wrong: string[] = [];
  let [known, tried] = [0, 0];
  while (tried < cases(1000)) {
    const queries = Array.from({ length: atOnce }, () => drawn.next());
    const described = await describe(queries);
    const results = await Promise.all(queries.map(run));
    for (const [at, sql] of queries.entries()) {
      const answer = described[at]?.answer ?? null;
      const rows = results[at] ?? null;
      if (answer === null || rows === null) continue;
      tried += 1;
      for (const [index, { name, nullable }] of answer.entries()) {
        if (nullable) continue;
        known += 1;
        if (rows.some((row) => row[index] === null)) wrong.push(`${name} of ${sql}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  // Otherwise the promise would be an empty one.
  assert.ok(known > tried / 10, `${known} columns of ${tried} queries are not null`);
});
