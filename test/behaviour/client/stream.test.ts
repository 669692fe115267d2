// The promises of dbhttpd/client's streams: all rows or an error, in flat memory, and ended when the caller leaves.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Client, connect, DbhttpdError, type StreamEnd } from '../../../src/client/client.ts';
import { createNumbers } from '../../support/database/numbers.ts';
import { eventually } from '../../support/eventually.ts';
import { type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway(
  { workers: 1 },
  {
    prepare: async (database) => {
      await createNumbers(database);
      await database.query("create procedure two() begin select 'x' as a; select 'y' as b; end");
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
      db = connect({ url: front.url });
    },
  },
);
let front: HttpFront;
let db: Client;
after(() => front?.stop());

type Read<Row> = { readonly rows: readonly Row[]; readonly end: StreamEnd | DbhttpdError };

/** All that a stream gives, and how it ends. */
async function readAll<Row>(stream: AsyncGenerator<Row, StreamEnd, void>): Promise<Read<Row>> {
  const rows: Row[] = [];
  try {
    for (;;) {
      const { done, value } = await stream.next();
      if (done === true) return { rows, end: value };
      rows.push(value);
    }
  } catch (error) {
    assert.ok(error instanceof DbhttpdError, String(error));
    return { rows, end: error };
  }
}

test('a stream has the rows of a query, and the same look', async () => {
  const text =
    "select seq + 9007199254740992 as id, '名前\n' as name from numbers where seq <= 1000 and seq <> ?";
  for (const options of [{}, { rows: 'array', bigint: 'bigint' }] as const) {
    const { rows, rowCount } = await db.query(text, [5], options);
    const streamed = await readAll(db.stream(text, [5], options));
    assert.deepEqual(streamed.rows, rows);
    assert.deepEqual(streamed.end, { rowCount, truncated: false, warningList: [] });
  }
  const none = await readAll(db.stream`select 1 as one where ${0} = 1`);
  assert.deepEqual(none, { rows: [], end: { rowCount: 0, truncated: false, warningList: [] } });
  const cut = await readAll(db.with({ maxRows: 2 }).stream`select seq from numbers`);
  assert.deepEqual(
    [cut.rows.length, cut.end],
    [2, { rowCount: 2, truncated: true, warningList: [] }],
  );
});

test('a reply that is cut anywhere is an error, and never an end', async () => {
  const text = 'select seq from numbers where seq <= 50';
  const whole = await gateway.post(
    '/v1/query',
    { sql: text },
    { headers: { Accept: 'application/x-ndjson' } },
  );
  for (let afterBytes = 0; afterBytes < whole.body.length - 1; afterBytes += 7) {
    front.next({ kind: 'cut', afterBytes });
    const { rows, end } = await readAll(db.stream(text, [], { readOnly: true }));
    assert.ok(end instanceof DbhttpdError, `${afterBytes} of ${whole.body.length} bytes`);
    assert.ok(['REPLY_CUT', 'FETCH_FAILED'].includes(end.code), end.code);
    assert.deepEqual([end.outcome, end.retryable], ['failed', true]);
    assert.ok(rows.length <= 50);
  }
  // Well-formed to HTTP, and without its last line all the same.
  const lines = whole.text.trimEnd().split('\n').slice(0, -1);
  const headers = { 'Content-Type': 'application/x-ndjson' };
  front.next({ kind: 'answer', status: 200, headers, body: `${lines.join('\n')}\n` });
  const { rows, end } = await readAll(db.stream(text, []));
  assert.equal(rows.length, 50);
  assert.ok(end instanceof DbhttpdError);
  assert.deepEqual([end.code, end.outcome], ['REPLY_CUT', 'unknown']);
});

test('an error in the last line is thrown behind the rows that came before it', async () => {
  // The subquery has two rows at the end alone, beyond what is held back.
  const sql = `select repeat('x', 1000) as x, (select 1 from dual where seq = 900 union all select 2 from dual where seq = 900) as n from numbers where seq <= 900`;
  const { rows, end } = await readAll(connect({ url: gateway.url }).stream(sql, []));
  assert.ok(end instanceof DbhttpdError);
  assert.deepEqual([end.code, end.errno, end.status], ['ER_SUBQUERY_NO_1_ROW', 1242, 422]);
  assert.ok(rows.length > 0 && rows.length < 900);
});

test('a statement that fails before its first row fails as a query does', async () => {
  const { rows, end } = await readAll(db.stream`select * from nope`);
  assert.ok(end instanceof DbhttpdError);
  assert.deepEqual([rows, end.code, end.status], [[], 'ER_NO_SUCH_TABLE', 422]);
});

test('a result without columns is refused, and comes completely if that could not be known', async () => {
  for (const text of ['call two()', 'do 1']) {
    const { end } = await readAll(db.stream(text, []));
    assert.ok(end instanceof DbhttpdError);
    assert.deepEqual([end.code, end.outcome], ['NOT_ACCEPTABLE', 'not_executed']);
  }
  const whole = await gateway.post('/v1/query', { sql: 'call two()' });
  const headers = { 'Content-Type': 'application/json; charset=utf-8' };
  front.next({ kind: 'answer', status: 200, headers, body: whole.text });
  const { rows, end } = await readAll(db.stream`call two()`);
  assert.deepEqual([rows, end], [[{ a: 'x' }], { rowCount: 1, truncated: false, warningList: [] }]);
});

test('leaving the loop, or aborting, ends the statement', async () => {
  const direct = connect({ url: gateway.url, readOnly: true });
  const sql = "select a.seq, repeat('x', 1000) as x from numbers a, numbers b";
  const busy = () => readMetric(gateway, 'dbhttpd_pool_connections', { state: 'busy' });
  let taken = 0;
  for await (const _row of direct.stream(sql, [])) {
    taken += 1;
    if (taken === 3) break;
  }
  await eventually('the statement has ended', async () => (await busy()) === 0);

  const leaving = new AbortController();
  const stream = direct.stream(sql, [], { signal: leaving.signal });
  assert.equal((await stream.next()).done, false);
  leaving.abort();
  const { end } = await readAll(stream);
  assert.ok(end instanceof DbhttpdError);
  assert.deepEqual([end.code, end.outcome], ['ABORTED', 'failed']);
  await eventually('the statement has ended', async () => (await busy()) === 0);
});

test('memory remains flat for any number of rows', async () => {
  const direct = connect({ url: gateway.url, readOnly: true });
  let baseline = 0;
  let most = 0;
  let count = 0;
  // 150 MB, of which the first 30 warm up.
  const sql =
    "select a.seq, repeat('x', 5000) as x from numbers a, numbers b where a.seq <= 15000 and b.seq <= 2";
  for await (const _row of direct.stream(sql, [])) {
    count += 1;
    if (count % 100 === 0) most = Math.max(most, process.memoryUsage.rss());
    if (count === 6000) [baseline, most] = [most, 0];
  }
  assert.equal(count, 30_000);
  assert.ok(most < baseline + 64 * 2 ** 20, `${baseline} became ${most}`);
});

test('progress counts rows and bytes as they arrive, and a query has none', async () => {
  const reported: { readonly rows: number | null; readonly bytes: number }[] = [];
  const onProgress = (progress: (typeof reported)[number]) => void reported.push(progress);
  const sql = "select seq, repeat('x', 1000) as x from numbers where seq <= 2000";
  const { rows } = await readAll(connect({ url: gateway.url }).stream(sql, [], { onProgress }));
  assert.equal(rows.length, 2000);
  assert.ok(reported.length > 1);
  assert.equal(reported.at(-1)?.rows, 2000);
  assert.ok((reported.at(-1)?.bytes ?? 0) > 2_000_000);
  assert.ok(reported.every(({ bytes }, index) => bytes > (reported[index - 1]?.bytes ?? 0)));
  await assert.rejects(db.with({ onProgress }).query`select 1`, /"onProgress" is no option/);
});

test('CSV arrives in parts, is whole or an error, and is refused for other results', async () => {
  const sql = `select seq as id, '名,"前"' as name from numbers where seq <= 3000 order by seq`;
  const records = Array.from({ length: 3000 }, (_, index) => `${index + 1},"名,""前"""\r\n`);
  const expected = `id,name\r\n${records.join('')}`;
  const bytes: number[] = [];
  const parts: string[] = [];
  const onProgress = (progress: { readonly bytes: number }) => void bytes.push(progress.bytes);
  for await (const part of db.csv(sql, [], { onProgress })) parts.push(part);
  assert.equal(parts.join(''), expected);
  assert.equal(bytes.at(-1), Buffer.byteLength(expected));
  front.next({ kind: 'cut', afterBytes: 200 });
  await assert.rejects(
    async () => {
      for await (const _part of db.csv(sql, [], { readOnly: true }));
    },
    { name: 'DbhttpdError', code: 'REPLY_CUT', outcome: 'failed' },
  );
  for (const none of ['do 1', 'call two()']) {
    await assert.rejects(db.csv(none, []).next(), DbhttpdError);
  }
});
