// An exception while one request is handled ends that request: its client gets a reply, others notice nothing, the worker lives.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { waiting } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const faults = new URL('../../support/request-faults.js', import.meta.url).href;

const { database, gateway } = useGateway(
  { workers: 1, pool: 2, access_log: 'json', max_wait: '1m', statement_timeout: '5m' },
  {
    env: { NODE_OPTIONS: `--import ${faults}` },
    prepare: async (own) => {
      await createGate(own);
      await own.query('create table written (v int)');
    },
  },
);
let worker: number | undefined;
beforeEach(() => {
  worker ??= gateway.workers()[0];
});
afterEach(async () => {
  assert.equal(cellOf(await gateway.db({ SQL: 'select 1' })), 1);
  assert.deepEqual(gateway.workers(), [worker]);
  await eventually('no connection is lost to the pool', async () => {
    const busy = await readMetric(gateway, 'dbhttpd_pool_connections', { state: 'busy' });
    return busy === 0;
  });
  assert.ok(!gateway.log().includes('on purpose'), 'the log has no words of an exception');
});

const binding = { SQL: 'select ?', PARAMS: ['fault-in-binding'] };
const sending = { SQL: "select 'fault-in-sending'" };
const replying = { SQL: "select 'fault-in-replying'" };

test('while a request is read: 500, and nothing was executed', async () => {
  for (const reply of [await gateway.db(binding), await gateway.dbPost(binding)]) {
    assert.equal(outcomeOf(reply), '500 INTERNAL not_executed');
  }
  await eventually('the log tells it', () =>
    /an exception ended a request request=\S+ thrown="TypeError < /.test(gateway.log()),
  );
});

test('while a statement is about to be sent: 500, and the connection is not lost to others', async () => {
  for (let n = 0; n < 5; n += 1) {
    assert.equal(outcomeOf(await gateway.dbPost(sending)), '500 INTERNAL not_executed');
  }
});

test('requests that wait beside it are answered', async () => {
  const gate = await closeGate(database);
  const busy = Array.from({ length: 2 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  const processlist = await openProcesslist(database);
  await processlist.started('from gate', 2);
  processlist.close();
  const asked = [sending, { SQL: 'select 2' }, sending, { SQL: 'select 3' }];
  const replies = asked.map((request) => gateway.dbPost(request));
  await waiting(gateway, asked.length);
  await gate.open();
  const [first, two, second, three] = await Promise.all(replies);
  assert.ok(first && two && second && three);
  assert.deepEqual(
    [outcomeOf(first), outcomeOf(second)],
    Array(2).fill('500 INTERNAL not_executed'),
  );
  assert.deepEqual([cellOf(two), cellOf(three)], [2, 3]);
  for (const reply of await Promise.all(busy)) assert.equal(cellOf(reply), 0);
});

test('while a reply is sent: its connection is reset, and logs and metrics report it', async () => {
  const before_ = await readMetric(gateway, 'dbhttpd_failures_total', { code: 'INTERNAL' });
  const unknown = await readMetric(gateway, 'dbhttpd_outcomes_total', { outcome: 'unknown' });
  await assert.rejects(gateway.dbPost(replying));
  const SQL = `insert into written values (1); ${replying.SQL}`;
  await assert.rejects(gateway.dbPost({ SQL }));
  const count = async (name: string, labels: Record<string, string>) =>
    readMetric(gateway, name, labels);
  await eventually(
    'they are counted',
    async () => (await count('dbhttpd_failures_total', { code: 'INTERNAL' })) === before_ + 2,
  );
  assert.equal(await count('dbhttpd_outcomes_total', { outcome: 'unknown' }), unknown + 1);
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select count(*) from written' })), 1);
});

test('while an answer is awaited, and the rest of the request is malformed: 400', async () => {
  const lines = ['/readyz', '/metrics', '/v1/stats', '/v1/requests', '/v1/statements'].map(
    (path) => `GET ${path}`,
  );
  for (const line of [...lines, 'DELETE /v1/requests/0-1-1']) {
    const head = `${line} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const reply = await exchange(gateway.port, `${head}no size\r\n`);
    assert.equal(reply.status, 400, line);
  }
});
