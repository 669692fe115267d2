// Requests of more than 64 KiB are worked on in pieces: they have the replies that short ones have, on every door.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  {
    workers: 1,
    pool: 2,
    compress: 'off',
    max_request_bytes: '16MiB',
    token: 'secret',
    drivers: 'planetscale',
  },
  {
    prepare: async (server) => {
      await server.query('create table written (n int) engine = innodb');
    },
  },
);

const authorization = 'Bearer secret';
const db = (body: object | string) => gateway.post('/db', body, { headers: { authorization } });
const ask = (path: string, body: object | string, headers = {}) =>
  gateway.post(path, body, { headers: { authorization, ...headers } });
/** More than is worked on at once. */
const padding = `/*${' '.repeat(80_000)}*/`;
const count = async () => (await database.query('select n from written')).length;

type Problem = { readonly code: string; readonly outcome: string; readonly offset?: number };
type Failed = { readonly CODE: string; readonly ERROR: string };

test('twenty thousand statements have as many results, and an error reports its statement', async () => {
  const many = await db({ SQL: 'select 1;'.repeat(20_000) });
  assert.equal(many.json<{ RESULT: unknown[] }>().RESULT.length, 20_000);
  const failed = await db({ SQL: `${'select 1;'.repeat(10_000)} select nope; select 2` });
  const { STATEMENT, MYSQL_ERRNO } = failed.json<Record<string, unknown>>();
  assert.deepEqual([STATEMENT, MYSQL_ERRNO], [10_000, 1054]);
});

test('long texts are read as short ones: byte order mark, URL, parameters, exact digits', async () => {
  const marked = await db(`\ufeff${JSON.stringify({ SQL: `select 1 as x ${padding}` })}`);
  assert.deepEqual(marked.json<{ RESULT: { ROWS: unknown } }>().RESULT.ROWS, [[1]]);
  const body = JSON.stringify({ SQL: `select ? as x ${padding}`, PARAMS: ['é'] });
  const inUrl = await ask(`/db`, body);
  const got = await gateway.db(
    { SQL: `select ? as x ${padding}`, PARAMS: ['é'] },
    { headers: { authorization } },
  );
  assert.deepEqual(got.json(), inUrl.json());
  const exact = await ask('/v1/query', `{"sql":"select ? as x ${padding}","params":[0.10]}`);
  assert.deepEqual(exact.json<{ rows: unknown }>().rows, [['0.10']]);
  const list = Array.from({ length: 30_000 }, (_, index) => index);
  const found = await ask('/v1/query', {
    sql: 'select 29999 in (:list) as x',
    numbers: 'raw',
    params: { list },
  });
  assert.deepEqual(found.json<{ rows: unknown }>().rows, [[1]]);
});

test('a fault in a long request is reported as in a short one', async () => {
  const refused = async (path: string, body: object | string) => {
    const reply = await ask(path, body);
    const { CODE, code } = reply.json<Partial<Failed & Problem>>();
    return [reply.status, CODE ?? code];
  };
  const keys = Array.from({ length: 70_000 }, (_, index) => `"k${index}":1`).join();
  const broken = `{"sql":"select 1 ${padding}",}`;
  for (const [path, name] of [
    ['/db', 'SQL'],
    ['/v1/query', 'sql'],
  ] as const) {
    assert.deepEqual(await refused(path, broken), [400, 'BAD_JSON'], path);
    assert.deepEqual(await refused(path, `{"${name}":"select 1",${keys}}`), [
      413,
      'TOO_MANY_PARAMETERS',
    ]);
    assert.deepEqual(
      await refused(path, `{"${name}":"\\ud800${padding}"}`),
      [400, 'BAD_KEY'],
      path,
    );
  }
  const several = await ask('/v1/query', { sql: `select 1 ${padding}; select 2` });
  const { code, offset } = several.json<Problem>();
  assert.deepEqual([code, offset], ['SEVERAL_STATEMENTS', `select 1 ${padding}; `.length]);
  const unknown = await ask('/v1/query', { sql: `select 1 ${padding}`, params: { a: 1 } });
  assert.equal(unknown.json<Problem>().code, 'PARAMS_NAME');
});

test('formats, dry runs and batches', async () => {
  const sql = `select 1 as x ${padding}`;
  const csv = await ask('/v1/query', { sql }, { accept: 'text/csv' });
  assert.equal(csv.text, 'x\r\n1\r\n');
  const json = await ask(
    '/v1/query',
    { sql: `do 1 ${padding}` },
    { accept: 'text/csv, */*;q=0.1' },
  );
  assert.equal(json.status, 200);
  const before = await count();
  const dry = { sql: `insert into written values (1) ${padding}`, dry_run: true };
  const undone = await ask('/v1/query', dry);
  assert.deepEqual(undone.json<{ rolled_back: boolean }>().rolled_back, true, undone.text);
  assert.equal(await count(), before);
  const statements = Array.from({ length: 3000 }, (_, n) => ({
    sql: 'insert into written values (?)',
    params: [n],
  }));
  const batch = await ask('/v1/batch', { statements });
  assert.equal(batch.json<{ results: unknown[] }>().results.length, 3000, batch.text.slice(0, 300));
  assert.equal(await count(), before + 3000);
  const ended = await ask('/v1/batch', {
    statements: [...statements, { sql: `commit ${padding}` }],
  });
  const { code, statement } = ended.json<Problem & { statement: number }>();
  assert.deepEqual([ended.status, code, statement], [400, 'NOT_IN_TRANSACTION', 3000]);
  assert.equal(await count(), before + 3000);
});

test('transactions that a client holds, and those of drivers', async () => {
  const before = await count();
  const begun = await ask('/v1/transaction', {});
  const { transaction } = begun.json<{ transaction: string }>();
  const within = (sql: string) => ask('/v1/query', { transaction, sql });
  assert.equal((await within(`insert into written values (2) ${padding}`)).status, 200);
  const refused = await within(`commit ${padding}`);
  assert.equal(refused.json<Problem>().code, 'NOT_IN_TRANSACTION');
  assert.equal((await ask('/v1/transaction/commit', { transaction })).status, 200);
  assert.equal(await count(), before + 1);
  const credentials = { authorization: `Basic ${Buffer.from('x:secret').toString('base64')}` };
  let session: unknown = null;
  const execute = async (query: string) => {
    const reply = await ask('/psdb.v1alpha1.Database/Execute', { query, session }, credentials);
    const reported = reply.json<{ session: unknown; error?: unknown }>();
    session = reported.session;
    return reported.error;
  };
  for (const query of ['begin', `insert into written values (3) ${padding}`, 'commit']) {
    assert.equal(await execute(query), undefined);
  }
  assert.equal(await execute(`select 1 ${padding}`), undefined);
  assert.equal(await count(), before + 2);
});
