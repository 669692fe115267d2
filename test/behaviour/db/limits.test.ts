// The promise of max_rows and max_result_bytes: a cut result says so, a result too large is refused before its
// first byte and reset after.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { openRaw } from '../../support/http.ts';
import { HttpReplyError } from '../../support/http-error.ts';
import { parseStrictJson } from '../../support/strict-json.ts';
import { useGateway } from '../../support/use-gateway.ts';

/** It cuts results. Its section `refusing` holds more back than a result may have, `resetting` streams before a result is too large. */
const { gateway, database } = useGateway(
  { workers: 1, buffer: '64KiB', max_rows: 3 },
  {
    prepare: async (own) => {
      await own.query('create table numbers (n int primary key, filler varchar(100))');
      const filler = 'x'.repeat(90);
      const values = Array.from({ length: 5000 }, (_, n) => `(${n},'${filler}')`);
      await own.query(`insert into numbers values ${values}`);
      await own.query('create table written (v int primary key)');
    },
    sections: {
      refusing: { pool: 2, max_result_bytes: '32KiB' },
      resetting: { pool: 2, buffer: '1KiB', max_result_bytes: '100KiB' },
    },
  },
);
const refuse = (SQL: string) => gateway.db({ SQL, SERVER: 'refusing' });
const reset = (SQL: string) => gateway.db({ SQL, SERVER: 'resetting' });

type Result = { readonly ROWS: unknown[][]; readonly TRUNCATED?: boolean };
type Document = { readonly RESULT: Result | Result[]; readonly TRUNCATED?: boolean };

async function rows(SQL: string) {
  const reply = await gateway.db({ SQL });
  parseStrictJson(reply.body);
  const document = reply.json<Document>();
  const results = Array.isArray(document.RESULT) ? document.RESULT : [document.RESULT];
  return { document, results, counts: results.map((result) => result.ROWS?.length) };
}

test('cuts a result after max_rows rows, and reports it at the end', async () => {
  const { document, results } = await rows('select n from numbers order by n');
  assert.deepEqual(results[0]?.ROWS, [[0], [1], [2]]);
  assert.equal(document.TRUNCATED, true);
  assert.deepEqual(Object.keys(document), ['RESULT', 'SERVER', 'TRUNCATED']);
});

test('reports nothing if nothing was cut', async () => {
  for (const [sql, count] of [
    ['select n from numbers limit 3', 3],
    ['select n from numbers limit 2', 2],
    ['select n from numbers limit 0', 0],
  ] as const) {
    const { document, counts } = await rows(sql);
    assert.deepEqual(counts, [count]);
    assert.equal(document.TRUNCATED, undefined);
  }
});

test('cuts each of several results separately', async () => {
  const { document, counts, results } = await rows(
    'select n from numbers; do 1; select 1; select n from numbers limit 4',
  );
  assert.deepEqual(counts, [3, undefined, 1, 3]);
  assert.deepEqual(
    results.map((result) => result.TRUNCATED),
    [true, undefined, undefined, true],
  );
  assert.equal(document.TRUNCATED, true);
});

const wide = 'select * from numbers order by n limit';

test('takes a result that is within max_result_bytes', async () => {
  for (const [ask, count, limit] of [
    [refuse, 300, 32 * 1024],
    [reset, 900, 100 * 1024],
  ] as const) {
    const reply = await ask(`${wide} ${count}`);
    assert.ok(reply.body.length > 0.8 * limit && reply.body.length < limit, `${reply.body.length}`);
    assert.equal(reply.json<Document & { RESULT: Result }>().RESULT.ROWS.length, count);
  }
});

test('refuses a result that is too large while nothing has left: 422', async () => {
  for (const [sql, outcome] of [
    ["select repeat('x', 40000)", 'failed'],
    ["select 1; select repeat('x', 40000)", 'failed'],
    ["insert into written values (1); select repeat('x', 40000)", 'unknown'],
  ] as const) {
    const reply = await refuse(sql);
    const { CODE, OUTCOME } = reply.json<{ CODE: string; OUTCOME: string }>();
    assert.deepEqual([reply.status, CODE, OUTCOME], [422, 'RESULT_TOO_LARGE', outcome], sql);
  }
});

test('resets a result that turns out too large after rows have left', async () => {
  const client = await openRaw(gateway.port);
  const query = encodeURIComponent(JSON.stringify({ SQL: `${wide} 5000`, SERVER: 'resetting' }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await assert.rejects(client.reply(), (error) => {
    assert.ok(error instanceof HttpReplyError);
    assert.equal(error.fault, 'reset');
    assert.throws(() => parseStrictJson(error.received));
    return true;
  });
  client.socket.destroy();
});

test('stops a result that is too large, and continues to serve', async () => {
  const slow = "select n, repeat('x', 5000), sleep(if(n < 20, 0, 0.05)) as slowly from numbers";
  for (let round = 0; round < 10; round += 1) {
    assert.equal((await refuse(slow)).status, 422);
  }
  await eventually('nothing runs', async () => {
    const running = await database.query('select info from information_schema.processlist');
    return !running.some(({ info }) => String(info).includes('slowly'));
  });
  assert.equal((await refuse('select 1')).status, 200);
});
