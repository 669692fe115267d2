// Quick reads share connections, several at a time: nobody can tell by a reply.
// Must not know how they are shared: a shape of statement is made quick, then one of its kind is not.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, documentOf, rowsOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
let gateway: Gateway;

const manyRows = 400_000;

before(async () => {
  database = await startDatabase();
  for (const sql of [
    'create table t (id int primary key, v varchar(50))',
    "insert into t values (1, 'a'), (7, 'b')",
    'create table big (id int primary key, v varchar(200))',
    `insert into big with recursive n as (select 1 as i union all select i + 1 from n where i < 1000)
     select (a.i - 1) * 1000 + b.i, repeat('x', 180) from n a join n b where a.i <= ${manyRows / 1000}`,
    `create function moves(n int) returns int
     begin if n = 7 then set time_zone = '+05:00'; end if; return n; end`,
    'create view zones as select id, moves(id) as z from t',
  ]) {
    await database.query(sql);
  }
  gateway = await startGateway({ database, settings: { workers: 1, pool: 4 } });
});
after(async () => {
  await gateway?.stop();
  await database.stop();
});

const ask = (sql: string) => gateway.dbPost({ SQL: sql });

/** Asks often enough that the gateway takes statements of this kind for quick. */
async function makeQuick(...statements: string[]): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    for (const sql of statements) assert.equal((await ask(sql)).status, 200);
  }
}

test('a large result comes whole, though others of its kind were small', async () => {
  const sql = (count: number) => `select * from big where id <= ${count}`;
  await makeQuick(sql(2));
  assert.equal(rowsOf(await ask(sql(manyRows))).length, manyRows);
});

test('a single cell larger than what is held back comes whole, beside others', async () => {
  const sql = (count: number) => `select repeat('y', ${count})`;
  await makeQuick(sql(3));
  const sizes = Array.from({ length: 30 }, (_, at) => (at % 10 === 5 ? 3_000_000 : at));
  const replies = await Promise.all(sizes.map((size) => ask(sql(size))));
  assert.deepEqual(
    replies.map((reply) => String(cellOf(reply)).length),
    sizes,
  );
});

test('what a read changes in its session behind a view is not seen by those beside it', async () => {
  const zone = 'select unix_timestamp("2020-01-01 00:00:00")';
  const change = (id: number) => `select z from zones where id = ${id}`;
  const expected = cellOf(await ask(zone));
  await makeQuick(change(1), zone);
  const statements = Array.from({ length: 60 }, (_, at) => (at % 10 === 0 ? change(7) : zone));
  const replies = await Promise.all(statements.map(ask));
  assert.deepEqual(
    replies.map(cellOf),
    statements.map((sql) => (sql === zone ? expected : 7)),
  );
});

test('a statement that fails costs those beside it nothing', async () => {
  const sql = (text: string) => `select v, extractvalue('<a/>', '${text}') from t where id = 1`;
  await makeQuick(sql('/a'));
  const paths = Array.from({ length: 40 }, (_, at) => (at % 8 === 3 ? '/a[' : '/a'));
  const replies = await Promise.all(paths.map((path) => ask(sql(path))));
  assert.deepEqual(
    replies.map((reply) => documentOf(reply).MYSQL_ERRNO),
    paths.map((path) => (path === '/a' ? undefined : 1105)),
  );
});
