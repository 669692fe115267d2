// The promise behind the names that classification trusts: on the server at hand each is a keyword or a
// built-in, so that no stored function can answer to it. Must not know how a text is classified.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { builtInsOf, unsuspectedNames } from '../../src/worker/sql/vocabulary.ts';
import { type Database, startDatabase } from '../support/mariadb.ts';

const functionDoesNotExist = 1305;

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

test('no name that classification trusts can reach a stored function', async () => {
  const connection = await database.connect();
  for (const name of unsuspectedNames(builtInsOf(database.flavour, database.version))) {
    for (const count of [0, 1, 2, 3, 4, 8]) {
      const errno = await connection.query(`select ${name}(${Array(count).fill(0)})`).then(
        () => 0,
        (error: { errno: number }) => error.errno,
      );
      assert.notEqual(errno, functionDoesNotExist, `${name} with ${count} arguments`);
    }
  }
  await connection.end();
});

test('a stored function with the name of a harmless one is not what a plain call reaches', async () => {
  const connection = await database.connect();
  await connection.query(
    'create function soundex(a int, b int) returns int deterministic return 42',
  );
  const [rows] = await connection.query({ sql: "select soundex('a')", rowsAsArray: true });
  assert.notDeepEqual(rows, [[42]]);
  await connection.end();
});
