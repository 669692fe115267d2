// The promise behind the names that classification trusts: on the server at hand each is a keyword or a
// built-in, so that no stored function can answer to it.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { analyse } from '../../../src/shared/sql/analyse.ts';
import { builtInsOf, unsuspectedNames } from '../../../src/shared/sql/vocabulary.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';

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

test('a plain call does not reach a stored function with the name of a harmless one', async () => {
  const connection = await database.connect();
  await connection.query(
    'create function soundex(a int, b int) returns int deterministic return 42',
  );
  const [rows] = await connection.query({ sql: "select soundex('a')", rowsAsArray: true });
  assert.notDeepEqual(rows, [[42]]);
  await connection.end();
});

test('a name whose parenthesis does not touch it is not trusted if it reaches a stored function', async () => {
  const connection = await database.connect({ flags: ['-IGNORE_SPACE'] });
  const builtIns = builtInsOf(database.flavour, database.version);
  const reached: string[] = [];
  for (const name of unsuspectedNames(builtIns)) {
    await connection
      .query(`create function \`${name}\`(a int) returns int deterministic return 4711`)
      .catch(() => {});
    for (const sql of [`select ${name} (1)`, `select ${name}/* */(1)`]) {
      const [rows] = await connection.query({ sql, rowsAsArray: true }).catch(() => [[]]);
      if (String(rows) !== '4711') continue;
      reached.push(name);
      assert.equal(analyse(sql, builtIns).classification.leavesSessionClean, false, sql);
    }
  }
  assert.ok(reached.includes('NOW'), 'the server has such names');
  assert.equal(
    analyse('select now(), count(*), upper (a) from t').classification.leavesSessionClean,
    true,
  );
  await connection.end();
});
