// Requests that arrive at another worker than the one that has their transaction: they are counted once, and are like all others.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, beforeEach, test } from 'node:test';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import type { RawReply } from '../../support/http.ts';
import { getReport } from '../../support/reports.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import {
  beginAt,
  formatRequest,
  openAtEach,
  openBeside,
  type WorkerConnection,
} from '../../support/worker-connections.ts';

type Line = Readonly<Record<string, string | number | boolean | null>>;

const { gateway, database } = useGateway(
  { workers: 2, access_log: 'json', transaction_idle_timeout: '1m' },
  {
    prepare: async (database) => {
      await createGate(database);
      await database.query(
        'create table notes (id int auto_increment primary key, who int) engine = innodb',
      );
    },
    ready: async () => {
      processes = await openProcesslist(database);
    },
  },
);
let processes: Processlist;
/** Connections to the worker that has the transaction, and to another one. */
let owner: WorkerConnection;
let other: WorkerConnection;
let transaction: string;
let gate: Gate | null = null;
after(() => processes?.close());
beforeEach(async () => {
  await database.query('delete from notes');
  const [first, second] = await openAtEach(gateway.port, 2);
  assert.ok(first && second);
  [owner, other] = [first, second];
  transaction = await beginAt(owner);
});
afterEach(async () => {
  await gate?.open();
  gate = null;
  await gateway.post('/v1/transaction/rollback', { transaction });
  for (const { socket } of [owner, other]) socket.destroy();
});

async function ask(connection: WorkerConnection, bytes: string): Promise<RawReply> {
  connection.send(bytes);
  return connection.reply();
}

const query = (sql: string, headers: Readonly<Record<string, string>> = {}) =>
  formatRequest('POST', '/v1/query', { sql, transaction }, headers);

const lines = (): readonly Line[] =>
  readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

/** The one line of the request that had this id: both workers have written what they had to when this resolves. */
async function onlyLineOf(id: string): Promise<Line> {
  await eventually(`the line of ${id}`, () => lines().some(({ request_id }) => request_id === id));
  for (const worker of [owner.worker, other.worker]) {
    const others = [owner.worker, other.worker].filter((one) => one !== worker);
    const connection = await openBeside(gateway.port, others);
    const later = `${id}-later-${worker}`;
    await ask(connection, formatRequest('GET', '/nothing', undefined, { 'X-Request-ID': later }));
    connection.socket.destroy();
    await eventually('a later line', () => lines().some(({ request_id }) => request_id === later));
  }
  const found = lines().filter(({ request_id }) => request_id === id);
  assert.equal(found.length, 1, JSON.stringify(found));
  return found[0] as Line;
}

test('a request that is passed on is one line of the access log, with all that others have', async () => {
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const reply = await ask(
    other,
    query('select 1 union select 2', {
      'X-Request-ID': 'passed',
      'User-Agent': 'tester/1',
      'X-Dbhttpd-Origin': '10.1.2.3 1.0 99999',
      traceparent: `00-${trace}-b7ad6b7169203331-01`,
    }),
  );
  assert.equal(reply.header('x-request-id'), 'passed');
  const { time, duration_ms, queue_ms, db_ms, ...rest } = await onlyLineOf('passed');
  assert.ok(Number(db_ms) > 0 && Number(duration_ms) >= Number(queue_ms) + Number(db_ms));
  assert.ok(Number(duration_ms) < 99_999, 'no client says itself when its request came');
  assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 10_000);
  assert.deepEqual(rest, {
    client: 'default',
    address: '127.0.0.1',
    method: 'POST',
    path: '/v1/query',
    protocol: 'HTTP/1.1',
    status: 200,
    code: null,
    bytes: reply.body.length,
    complete: true,
    outcome: 'ok',
    rows: 2,
    request_id: 'passed',
    trace_id: trace,
    user: null,
    tool: null,
    named: null,
    user_agent: 'tester/1',
    referer: null,
  });
});

test('it is counted once, by its status and by why it failed', async () => {
  const of = { endpoint: 'v1_query' };
  const counts = async () => [
    await readMetric(gateway, 'dbhttpd_requests_total', { ...of, status: '2xx' }),
    await readMetric(gateway, 'dbhttpd_requests_total', { ...of, status: '4xx' }),
    await readMetric(gateway, 'dbhttpd_outcomes_total', { outcome: 'ok' }),
    await readMetric(gateway, 'dbhttpd_failures_total', { code: 'NOT_IN_TRANSACTION' }),
    await readMetric(gateway, 'dbhttpd_client_connections'),
  ];
  const [good = 0, bad = 0, ok = 0, refused = 0, clients] = await counts();
  assert.equal((await ask(other, query('select 1'))).status, 200);
  assert.equal((await ask(other, query('commit', { 'X-Request-ID': 'refused' }))).status, 400);
  const { status, code, complete } = await onlyLineOf('refused');
  assert.deepEqual([status, code, complete], [400, 'NOT_IN_TRANSACTION', true]);
  assert.deepEqual(await counts(), [good + 1, bad + 1, ok + 1, refused + 1, clients]);
});

test('while it runs, it is listed once, with its own id and client; its connection to the other worker is not a client', async () => {
  const connections = () => readMetric(gateway, 'dbhttpd_client_connections');
  const before = await connections();
  gate = await closeGate(database);
  other.send(query(`select ${gate.zero} as looked_at`, { 'X-Request-ID': 'looked-at' }));
  await processes.started('looked_at');
  const reported = (await getReport(gateway, '/v1/requests')).json<{ requests: readonly Line[] }>()
    .requests;
  assert.deepEqual(
    reported.map(({ request_id, client, address, phase }) => ({
      request_id,
      client,
      address,
      phase,
    })),
    [{ request_id: 'looked-at', client: 'default', address: '127.0.0.1', phase: 'running' }],
  );
  assert.equal(await connections(), before);
  // It, and the scrape.
  assert.equal(await readMetric(gateway, 'dbhttpd_requests_in_flight'), 2);
  await gate.open();
  assert.equal((await other.reply()).status, 200);
});

test('if its client leaves, it is one line with its outcome', async () => {
  other.send(query('insert into notes (who) values (1)'));
  assert.equal((await other.reply()).status, 200);
  gate = await closeGate(database);
  other.send(query(`select ${gate.zero} as left_alone`, { 'X-Request-ID': 'left' }));
  await processes.started('left_alone');
  other.reset();
  await processes.ended('left_alone');
  const line = await onlyLineOf('left');
  const { status, code, outcome, complete } = line;
  assert.deepEqual(
    { status, code, outcome, complete },
    { status: 499, code: 'CLIENT_GONE', outcome: 'rolled_back', complete: false },
  );
  const held = () => readMetric(gateway, 'dbhttpd_transactions_held');
  await eventually('it is held no more', async () => (await held()) === 0);
});
