// The promise of cutting a text: as many statements as the server itself finds.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { analyse } from '../../../src/shared/sql/analyse.ts';
import { createResultMap } from '../../../src/shared/sql/statements.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { fc } from '../../support/property.ts';

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

/** Whether each result is a result set; null if the server refused a statement. */
async function results(connection: Connection, sql: string): Promise<boolean[] | null> {
  try {
    const [, fields] = await connection.query(sql);
    const list = fields as unknown as (unknown[] | undefined)[] | undefined;
    if (list === undefined || !list.some((item) => item === undefined || Array.isArray(item)))
      return [list !== undefined];
    return list.map((item) => item !== undefined);
  } catch {
    return null;
  }
}

test('finds as many statements as the server, comments and spaces included', async () => {
  const connection = await database.connect({ multipleStatements: true });
  const piece = fc.constantFrom(
    'select 1',
    "select ';'",
    'select `a;` from (select 1 as `a;`) x',
    ';',
    '; ',
    ';',
    ' ',
    '\n',
    '-- c\n',
    '-- ;\n',
    '# ;\n',
    '/* ; */',
    '/* c */',
    'do 1',
    "do ';'",
    '--',
    '/*/ ;*/',
    'select 1 as "a;"',
    "select 'a''b;'",
    ';\n\t',
    "select '\\\\';",
    'select 5--1',
  );
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 9 }), async (parts) => {
      const sql = parts.join('');
      const found = await results(connection, sql);
      if (found === null) return;
      compared += 1;
      assert.equal(analyse(sql).statements.length, found.length, JSON.stringify(sql));
    }),
    { numRuns: 2000 },
  );
  assert.ok(compared > 200, `only ${compared} texts were accepted by the server`);
  await connection.end();
});

test('gives each result to the statement it belongs to', async (t) => {
  if (database.flavour !== 'mariadb')
    t.diagnostic('compound statements outside of routines are left out: MariaDB only');
  const connection = await database.connect({ multipleStatements: true });
  await connection.query('create procedure two() begin select 1; do 1; select 2; end');
  await connection.query('create procedure none() begin do 1; end');
  const compound =
    database.flavour === 'mariadb'
      ? 'begin not atomic select 1; if true then select 2; end if; end'
      : 'call two()';
  const sql = `do 1; call two(); select 3; ${compound}; call none(); select 4; -- end`;
  const found = await results(connection, sql);
  assert.ok(found !== null);
  const map = createResultMap(analyse(sql).statements);
  assert.deepEqual(
    found.map((isResultSet) => map.next(isResultSet)),
    [0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 6],
  );
  await connection.end();
});
