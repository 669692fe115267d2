// multi_statements = off refuses a client's text of several statements. Transactions, which the gateway begins with several, still work.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Ask } from '../../support/ask.ts';
import { createDriver, driverSettings, driverToken } from '../../support/driver.ts';
import { beginHeld } from '../../support/held.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { ...driverSettings, workers: 1, multi_statements: 'off', idempotency_table: 'request_keys' },
  {
    prepare: async (own) => {
      await own.query('create table t (v int primary key) engine = innodb');
      await own.query(describeCreation(parseIdempotencyTable('request_keys', own.name)));
    },
  },
);
beforeEach(() => database.query('delete from t; insert into t values (1)'));

const bearing = { Authorization: `Bearer ${driverToken}` };
const asked: Pick<Ask, 'post'> = {
  post: (path, body, options = {}) =>
    gateway.post(path, body, { ...options, headers: { ...bearing, ...options.headers } }),
};
const values = async () => (await database.query('select v from t order by v')).map(({ v }) => v);

test('a batch is a transaction', async () => {
  const statements = [{ sql: 'insert into t values (2)' }, { sql: 'insert into t values (3)' }];
  const reply = await asked.post('/v1/batch', { statements });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(await values(), [1, 2, 3]);
});

test('a client holds a transaction', async () => {
  const held = await beginHeld(asked);
  assert.equal((await held.query('insert into t values (2)')).status, 200);
  assert.deepEqual(await held.rows('select v from t order by v'), [[1], [2]]);
  assert.equal((await held.commit()).status, 200);
  assert.deepEqual(await values(), [1, 2]);
});

test('a driver holds a transaction', async () => {
  await createDriver(gateway).transaction(async (held) => {
    await held.execute('insert into t values (?)', [2]);
  });
  assert.deepEqual(await values(), [1, 2]);
});

test('a write with a key counts once', async () => {
  const insert = () =>
    asked.post(
      '/v1/query',
      { sql: 'insert into t values (2)' },
      { headers: { 'Idempotency-Key': 'once' } },
    );
  assert.equal((await insert()).status, 200);
  assert.equal((await insert()).status, 200);
  assert.deepEqual(await values(), [1, 2]);
});

test('a write is undone if it is a trial, or changes more than it may', async () => {
  const update = (wish: object) =>
    asked.post('/v1/query', { sql: 'update t set v = v + 10', ...wish });
  const trial = await update({ dry_run: true });
  assert.equal(trial.status, 200, trial.text);
  assert.deepEqual(await values(), [1]);
  await database.query('insert into t values (2)');
  const refused = await update({ max_affected: 1 });
  assert.equal(refused.json<{ code: string }>().code, 'TOO_MANY_ROWS', refused.text);
  assert.deepEqual(await values(), [1, 2]);
  const allowed = await update({ max_affected: 2 });
  assert.equal(allowed.status, 200, allowed.text);
  assert.deepEqual(await values(), [11, 12]);
});

/** Two statements, at least as one of the servers and sql_modes reads them. */
const several = [
  'select 1; select 2',
  'select 1;-- two',
  "select 'a\\' ; delete from t; -- '",
  'select "a\\" ; delete from t; -- "',
  "select 1 /*! + '*/ ' */; delete from t -- '",
  "select 1 /*!99999 /* */ ' */; delete from t -- '",
  "select [']; delete from t -- '",
  "select 1 as $a$ '; $a$; delete from t -- '",
  'select 1 # \0; delete from t',
  'select `\0`; delete from t -- `',
  'begin not atomic delete from t; delete from t; end',
];
for (const SQL of several) {
  test(`a client's text is refused if it may be several statements: ${JSON.stringify(SQL)}`, async () => {
    const reply = await gateway.dbPost({ SQL }, { headers: bearing });
    assert.match(reply.text, /MULTI_STATEMENTS_OFF/);
    assert.deepEqual(await values(), [1]);
  });
}

test('one statement is not refused for a semicolon in a literal, in a name or at its end', async () => {
  const reply = await gateway.dbPost(
    { SQL: "select 'a;b', 1 as `;` /* ; */ ; " },
    { headers: bearing },
  );
  assert.equal(reply.status, 200, reply.text);
});
