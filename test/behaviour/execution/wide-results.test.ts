// The promise of max_columns: a result with more columns is refused before any row is read, and what was executed is never refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 2, compress: 'off', max_columns: 8, max_request_bytes: '4MiB' },
  {
    prepare: async (server) => {
      await server.query(`
        create table written (n int) engine = innodb;
        create procedure wide() begin insert into written values (50); select 1,1,1,1,1,1,1,1,1; end`);
    },
  },
);

/** A list of this many columns. */
const columns = (count: number) => Array.from({ length: count }, () => '1').join(',');
const written = async () => (await database.query('select n from written order by n')).length;

type Problem = { readonly code: string; readonly outcome: string };

async function refused(path: string, body: object, headers = {}) {
  const reply = await gateway.post(path, body, { headers });
  const { code, outcome } = reply.json<Problem>();
  return [reply.status, code, outcome];
}

test('a result with one column too many is 422, on /db and on every format of /v1', async () => {
  for (const count of [9, 300, 20_000]) {
    const sql = `select ${columns(count)}`;
    const reply = await gateway.db({ SQL: sql });
    const { CODE, OUTCOME } = reply.json<{ CODE: string; OUTCOME: string }>();
    assert.deepEqual([reply.status, CODE, OUTCOME], [422, 'TOO_MANY_COLUMNS', 'failed']);
    for (const accept of ['application/json', 'application/x-ndjson', 'text/csv']) {
      const reported = await refused('/v1/query', { sql }, { accept });
      assert.deepEqual(reported, [422, 'TOO_MANY_COLUMNS', 'failed'], accept);
    }
  }
});

test('a result with as many columns as are taken is whole', async () => {
  const reply = await gateway.db({ SQL: `select ${columns(8)}` });
  assert.deepEqual(reply.json<{ RESULT: { ROWS: unknown } }>().RESULT.ROWS, [
    Array.from({ length: 8 }, () => 1),
  ]);
});

test('the connection is used again, and later results on it are complete', async () => {
  for (let round = 0; round < 5; round += 1) {
    await gateway.db({ SQL: `select ${columns(500)}` });
    const reply = await gateway.db({ SQL: 'select 1 as one, 2 as two' });
    assert.deepEqual(reply.json<{ RESULT: { ROWS: unknown } }>().RESULT.ROWS, [[1, 2]]);
  }
});

test('a batch is undone by a result that is too wide', async () => {
  const before = await written();
  const reported = await refused('/v1/batch', {
    statements: [{ sql: 'insert into written values (1)' }, { sql: `select ${columns(9)}` }],
  });
  assert.deepEqual(reported, [422, 'TOO_MANY_COLUMNS', 'rolled_back']);
  assert.equal(await written(), before);
});

test('a statement that wrote is answered without the rows of its wide result, and reports that', async () => {
  const before = await written();
  const called = await gateway.post('/v1/query', { sql: 'call wide()' });
  const { results } = called.json<{ results: readonly object[] }>();
  assert.equal(called.status, 200, called.text);
  assert.deepEqual(results[0], {
    columns: [],
    rows: [],
    row_count: 0,
    truncated: true,
    warnings: 0,
  });
  const several = await gateway.db({
    SQL: `insert into written values (2); select ${columns(9)}; select 3`,
  });
  const { RESULT, TRUNCATED } = several.json<{ RESULT: unknown[]; TRUNCATED: boolean }>();
  assert.equal(several.status, 200);
  assert.deepEqual(RESULT[1], { HEADER: [], TYPES: [], ROWS: [], TRUNCATED: true });
  assert.deepEqual((RESULT[2] as { ROWS: unknown }).ROWS, [[3]]);
  assert.equal(TRUNCATED, true);
  assert.equal(await written(), before + 2);
});

test('a write with RETURNING is committed and not refused, in every format', async (t) => {
  if (database.flavour !== 'mariadb') {
    t.skip('only MariaDB has RETURNING');
    return;
  }
  const before = await written();
  const sql = `insert into written values (3), (4) returning ${columns(9)}`;
  for (const accept of ['application/json', 'application/x-ndjson', 'text/csv']) {
    const reply = await gateway.post('/v1/query', { sql }, { headers: { accept } });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
    const { rows, truncated } = reply.json<{ rows: unknown; truncated: boolean }>();
    assert.deepEqual([rows, truncated], [[], true]);
  }
  assert.equal(await written(), before + 6);
});

test('65,535 parameters are bound, and one more is 413', async () => {
  const ask = (count: number) => {
    const marks = Array.from({ length: count }, () => '?');
    const params = Array.from({ length: count }, () => 1);
    return gateway.post('/v1/query', { sql: `select 1 in (${marks}) as x`, params });
  };
  const most = await ask(65_535);
  assert.equal(most.status, 200, most.text.slice(0, 300));
  const more = await ask(65_536);
  const { code, outcome } = more.json<Problem>();
  assert.deepEqual([more.status, code, outcome], [413, 'TOO_MANY_PARAMETERS', 'not_executed']);
});
