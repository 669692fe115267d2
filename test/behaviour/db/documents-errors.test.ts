// The promise of errors in a document: dropped while held back, closed and reported once streamed; a lost
// connection never leaves a document that looks whole.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Document } from '../../support/db-results.ts';
import { openRaw, type RawReply } from '../../support/http.ts';
import { HttpReplyError } from '../../support/http-error.ts';
import { parseStrictJson } from '../../support/strict-json.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { gateway, proxy } = useProxiedGateway(
  { workers: 1, pool: 2 },
  {
    prepare: async (database) => {
      await database.query('create table numbers (n int primary key, filler varchar(100))');
      const filler = 'x'.repeat(90);
      const values = Array.from({ length: 10000 }, (_, n) => `(${n},'${filler}')`);
      await database.query(`insert into numbers values ${values}`);
      await database.query(
        `create function fails_at(n int, late int) returns int deterministic no sql begin
         if n = late then signal sqlstate '45000' set message_text = 'too "late"'; end if; return n; end`,
      );
      await database.query('create procedure fails() begin select 1; select n from nowhere; end');
      await database.query('create procedure works() begin select 1; select 2; end');
      await database.query('create table written (v int primary key)');
    },
  },
);

async function ask(SQL: string) {
  const reply = await gateway.dbPost({ SQL });
  assert.equal(reply.status, 200);
  parseStrictJson(reply.body);
  return { reply, document: reply.json<Document>() };
}

const failing = (late: number) => `select fails_at(n, ${late}), filler from numbers order by n`;

test('gives no RESULT when the first statement fails', async () => {
  for (const sql of ['select * from nope', 'selec', 'select * from nope; select 1']) {
    const { reply, document } = await ask(sql);
    assert.deepEqual(Object.keys(document), ['MYSQL_ERRNO', 'MYSQL_ERROR', 'SERVER']);
    assert.ok(document.MYSQL_ERRNO === 1146 || document.MYSQL_ERRNO === 1064);
    assert.equal(reply.headers['content-length'], String(reply.body.length));
  }
});

const inTheMiddle: readonly (readonly [sql: string, results: number, failed: number])[] = [
  ['select 1; select * from nope; select 3', 1, 1],
  ['do 1; do 1; selec', 2, 2],
  ['insert into written values (1); insert into written values (1); select 1', 1, 1],
  ['do 1; call works(); select * from nope', 4, 2],
  ['call works(); do 1; call works(); insert into written values (null)', 7, 3],
  ['do 1; call fails()', 2, 1],
];

test('gives the results before an error, and reports which statement failed', async (t) => {
  for (const [sql, results, failed] of inTheMiddle) {
    await t.test(sql, async () => {
      const { document } = await ask(sql);
      assert.ok(Array.isArray(document.RESULT));
      assert.equal(document.RESULT.length, results);
      assert.equal(document.OUTCOME, 'partial');
      assert.equal(document.STATEMENT, failed);
      assert.deepEqual(Object.keys(document), [
        'RESULT',
        'MYSQL_ERRNO',
        'MYSQL_ERROR',
        'OUTCOME',
        'STATEMENT',
        'SERVER',
      ]);
    });
  }
});

test('drops an incomplete result while nothing has left', async () => {
  const { reply, document } = await ask(failing(100));
  assert.deepEqual(document, { MYSQL_ERRNO: 1644, MYSQL_ERROR: 'too "late"', SERVER: 'world' });
  assert.equal(reply.headers['content-length'], String(reply.body.length));
  const after = await ask(`select 1; ${failing(100)}; select 2`);
  assert.ok(Array.isArray(after.document.RESULT));
  assert.equal(after.document.RESULT.length, 1);
  assert.equal(after.document.STATEMENT, 1);
});

test('closes the arrays and reports the error if rows have left already', async () => {
  const { reply, document } = await ask(failing(9000));
  assert.equal(reply.headers['transfer-encoding'], 'chunked');
  assert.ok(document.RESULT !== undefined && 'ROWS' in document.RESULT);
  assert.deepEqual(
    document.RESULT.ROWS?.map(([n]) => n),
    Array.from({ length: 9000 }, (_, n) => n),
  );
  assert.equal(document.MYSQL_ERRNO, 1644);
  assert.equal(document.MYSQL_ERROR, 'too "late"');
  const many = await ask(`select 1; ${failing(9000)}; select 2`);
  assert.ok(Array.isArray(many.document.RESULT));
  assert.equal(many.document.RESULT.length, 2);
  assert.deepEqual([many.document.OUTCOME, many.document.STATEMENT], ['partial', 1]);
});

test('reports an error between results if the results before it have left already', async () => {
  const { document } = await ask('select * from numbers; select * from nope');
  assert.ok(Array.isArray(document.RESULT));
  assert.equal(document.RESULT.length, 1);
  assert.deepEqual(
    [document.MYSQL_ERRNO, document.OUTCOME, document.STATEMENT],
    [1146, 'partial', 1],
  );
});

test('resets when the connection is lost after rows have left: nothing that looks whole', async (t) => {
  for (const how of ['fin', 'reset'] as const) {
    for (const version of ['1.1', '1.0']) {
      await t.test(`${how}, HTTP/${version}`, async () => {
        const rule = proxy.on(
          /from numbers/,
          { kind: 'cut-reply', afterBytes: 300_000, how },
          { times: 1 },
        );
        const client = await openRaw(gateway.port);
        const query = encodeURIComponent(JSON.stringify({ SQL: 'select * from numbers' }));
        client.send(`GET /db?${query} HTTP/${version}\r\nHost: localhost\r\n\r\n`);
        const error = await client.reply().catch((reason: unknown) => reason);
        client.socket.destroy();
        assert.equal(rule.hits(), 1);
        // An RST may overtake what the worker has not read yet: then nothing has left.
        if (how === 'reset' && 'status' in Object(error)) {
          assert.equal((error as RawReply).status, 502);
          return;
        }
        assert.ok(error instanceof HttpReplyError, String(error));
        assert.equal(error.fault, 'reset');
        assert.throws(() => parseStrictJson(error.received));
      });
    }
  }
});

test('answers 502 when the connection is lost while all is held back', async () => {
  for (const afterBytes of [0, 1, 20, 200, 9000]) {
    proxy.on(/from numbers/, { kind: 'cut-reply', afterBytes }, { times: 1 });
    const reply = await gateway.db({ SQL: 'select * from numbers' });
    const { OUTCOME, CODE } = reply.json<{ OUTCOME: string; CODE: string }>();
    assert.deepEqual([reply.status, CODE, OUTCOME], [502, 'CONNECTION_LOST', 'unknown']);
  }
  assert.equal((await ask('select count(*) from numbers')).document.MYSQL_ERRNO, undefined);
});
