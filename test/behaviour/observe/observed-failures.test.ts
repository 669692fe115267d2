// Every failure shows where an operator looks: in a counter that was there before, in the log, in the access log.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { failureCodes, outcomes } from '../../../src/shared/failure-codes.ts';
import { fillPool, holdAnswer, occupy, waiting } from '../../support/busy-pool.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { parseExposition, sumOf } from '../../support/exposition.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { exchange } from '../../support/http.ts';
import { gone } from '../../support/processes.ts';
import { readMetric, scrape } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import {
  formatRequest,
  openBeside,
  type WorkerConnection,
} from '../../support/worker-connections.ts';

const settings = { workers: 1, pool: 2, queue: 2, access_log: 'json' };
const { gateway, database, proxy } = useProxiedGateway(
  { ...settings, max_result_bytes: 200_000, slow_query: '200ms' },
  {
    prepare: async (prepared) => {
      await prepared.query('create table t (a int primary key)');
    },
  },
);
afterEach(async () => {
  proxy.heal();
  proxy.release();
  await isReady();
});

/** Resolves to whether a statement can run again. */
const isReady = () =>
  eventually('it serves', async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200);

/** Resolves to a function that counts the increase of the counters since now. */
async function countsOf(name: string, label: string): Promise<() => Promise<Counts>> {
  const read = async () => {
    const samples = await scrape(gateway);
    return (value: string) => sumOf(samples, name, { [label]: value });
  };
  const earlier = await read();
  return async () => {
    const later = await read();
    return (...values) => values.map((value) => later(value) - earlier(value));
  };
}

/** The number of counted events for each of these values of the label. */
type Counts = (...values: readonly string[]) => number[];

const failuresSince = () => countsOf('dbhttpd_failures_total', 'code');
const outcomesSince = () => countsOf('dbhttpd_outcomes_total', 'outcome');

const named = (id: string) => ({ headers: { 'X-Request-ID': id } });
const logLine = (part: RegExp, { log }: Pick<Gateway, 'log'> = gateway) =>
  eventually(`a line like ${part}`, () =>
    log()
      .split('\n')
      .find((line) => part.test(line)),
  );
const accessLine = (id: string) =>
  eventually(`the line of ${id}`, () =>
    readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .find((line) => line.request_id === id),
  );

// The first test, because later requests count.
test('every series that an alert needs is 0 before its first event', async () => {
  const samples = await scrape(gateway);
  const own = 'section="world",slot="0"';
  for (const outcome of outcomes) {
    assert.equal(samples.get(`dbhttpd_outcomes_total{${own},outcome="${outcome}"}`), 0, outcome);
  }
  for (const code of failureCodes) {
    assert.equal(samples.get(`dbhttpd_failures_total{${own},code="${code}"}`), 0, code);
  }
  for (const status of ['2xx', '4xx', '5xx']) {
    const sample = `dbhttpd_requests_total{${own},endpoint="db",status="${status}"}`;
    assert.equal(samples.get(sample), 0, status);
  }
  assert.equal(samples.get(`dbhttpd_data_refusals_total{${own}}`), 0);
  assert.equal(samples.get(`dbhttpd_replies_cut_total{${own}}`), 0);
  assert.equal(samples.get(`dbhttpd_requests_lost_total{${own}}`), 0);
  const backend = `backend="127.0.0.1:${proxy.port}"`;
  assert.equal(samples.get(`dbhttpd_pool_connections_max{${own},${backend}}`), settings.pool);
});

test('refusals by the data have a separate count, beside their outcomes', async () => {
  const insert = { sql: 'insert into only_once values (1)' };
  await gateway.db({ SQL: 'create table only_once (id int primary key)' });
  await gateway.post('/v1/query', insert);
  const refusals = () => readMetric(gateway, 'dbhttpd_data_refusals_total', {});
  const before = await refusals();
  const outcomes = await outcomesSince();
  const unmet = { sql: 'delete from only_once', expect: { affected_rows: 7 } };
  const statuses = [
    await gateway.post('/v1/query', insert),
    await gateway.post('/v1/batch', { statements: [insert] }),
    await gateway.post('/v1/batch', { statements: [unmet] }),
    await gateway.post('/v1/query', { ...unmet, expect: undefined, max_affected: 0 }),
    await gateway.post('/v1/query', { sql: 'insert into missing values (1)' }),
  ].map(({ status }) => status);
  assert.deepEqual(statuses, [409, 409, 409, 409, 422]);
  await eventually('they are counted', async () => (await refusals()) === before + 4);
  assert.deepEqual((await outcomes())('error', 'rolled_back'), [2, 3]);
});

test('a scrape has the build, the start, and the number of descriptors', async () => {
  const samples = await scrape(gateway);
  const { version } = JSON.parse(
    readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'),
  ) as { version: string };
  const node = process.versions.node;
  const build = `dbhttpd_build_info{section="world",version="${version}",node="${node}"}`;
  assert.equal(samples.get(build), 1, build);
  const startedAt = samples.get('process_start_time_seconds{section="world"}') ?? 0;
  const createdAt = statSync(gateway.configPath).mtimeMs / 1000;
  assert.ok(startedAt >= createdAt - 1 && startedAt <= Date.now() / 1000, `${startedAt}`);
  const open = samples.get('process_open_fds{section="world",slot="0"}') ?? 0;
  const most = samples.get('process_max_fds{section="world",slot="0"}') ?? 0;
  assert.ok(open > 10 && open < most, `${open} of ${most}`);
});

test('a full queue, a wait that took too long and a deadline while running are counted apart, and the access log has the code', async () => {
  const [failed, ended] = [await failuresSince(), await outcomesSince()];
  const SQL = 'select 1';
  await fillPool(gateway, settings.pool);
  for (let busy = 0; busy < settings.pool; busy += 1) await occupy(gateway, proxy);
  const waits = await gateway.dbPost({ SQL, TIMEOUT: 4_000 }, named('waits'));
  assert.equal(outcomeOf(waits), '503 WAITED_TOO_LONG not_executed');
  const queued = Array.from({ length: settings.queue }, () => gateway.dbPost({ SQL }));
  await waiting(gateway, settings.queue);
  const full = await gateway.dbPost({ SQL }, named('full'));
  assert.equal(outcomeOf(full), '503 QUEUE_FULL not_executed');
  proxy.release();
  for (const reply of queued) assert.equal((await reply).status, 200);
  const runs = await gateway.dbPost({ SQL: 'select sleep(20)', TIMEOUT: 2_000 }, named('runs'));
  assert.equal(outcomeOf(runs), '504 DEADLINE_RUNNING failed');
  const refused = await gateway.get('/nothing', named('refused'));
  assert.equal(refused.status, 404);
  const codes = ['QUEUE_FULL', 'WAITED_TOO_LONG', 'DEADLINE_RUNNING', 'NOT_FOUND'];
  assert.deepEqual((await failed())(...codes), [1, 1, 1, 1]);
  const reported = ['full', 'waits', 'runs', 'refused'].map((id) => accessLine(id));
  assert.deepEqual(
    (await Promise.all(reported)).map((line) => line.code),
    codes,
  );
  assert.deepEqual((await ended())('not_executed'), [2]);
});

test('bytes that are not HTTP are counted by their code too', async () => {
  const failed = await failuresSince();
  assert.equal((await exchange(gateway.port, 'NO HTTP\r\n\r\n')).status, 400);
  assert.deepEqual((await failed())('BAD_REQUEST'), [1]);
});

test('several statements of which one fails count as the document reports: partial, rolled back, error', async () => {
  const ended = await outcomesSince();
  await gateway.dbPost({ SQL: 'insert into t values (1); insert into nowhere values (1)' });
  await gateway.dbPost({
    SQL: 'begin; insert into t values (2); insert into nowhere values (2)',
    ROLLBACK_ON_ERROR: true,
  });
  await gateway.dbPost({ SQL: 'select nothing' });
  assert.deepEqual((await ended())('partial', 'rolled_back', 'error'), [1, 1, 1]);
});

test('a write whose outcome is unknown has a line, with its request, its reason and its shape', async () => {
  const ended = await outcomesSince();
  await fillPool(gateway, settings.pool);
  const SQL = "insert into t select 11 from (select sleep(20) as x, 'secret') as s";
  const killed = await gateway.dbPost({ SQL, TIMEOUT: 2_000 }, named('killed'));
  assert.equal(outcomeOf(killed), '504 DEADLINE_RUNNING unknown');
  const line = await logLine(/ warn .* outcome=unknown request=killed /);
  assert.match(line, / code=DEADLINE_RUNNING statement="insert into t select \? /);

  const insert = 'insert into t values (12)';
  const ask = () => gateway.dbPost({ SQL: insert }, named('lost'));
  const { reply } = await holdAnswer(proxy, insert, ask);
  proxy.cutAll();
  assert.equal(outcomeOf(await reply), '502 CONNECTION_LOST unknown');
  await logLine(/ outcome=unknown request=lost code=CONNECTION_LOST /);
  assert.deepEqual((await ended())('unknown'), [2]);
  assert.doesNotMatch(gateway.log(), /secret/);
});

test('a reply that max_result_bytes cuts after its first byte has a line and is counted', async () => {
  const failed = await failuresSince();
  const cut = () => readMetric(gateway, 'dbhttpd_replies_cut_total');
  const cutBefore = await cut();
  const SQL = "select repeat('x', 60000) union all select repeat('y', 60000) ".concat(
    "union all select repeat('z', 60000) union all select repeat('w', 60000)",
  );
  await assert.rejects(gateway.dbPost({ SQL }, named('long')));
  const line = await logLine(/ warn .*a reply was cut/);
  assert.match(line, / code=RESULT_TOO_LARGE request=long rows=\d bytes=\d+/);
  assert.equal(await cut(), cutBefore + 1);
  assert.deepEqual((await failed())('RESULT_TOO_LARGE'), [1]);
  assert.equal((await accessLine('long')).code, 'RESULT_TOO_LARGE');
});

test('a statement that never reached MySQL is not reported as slow, however long its connection took', async (t) => {
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  // The session that was used last has been idle for the shortest time.
  const id = cellOf(await gateway.dbPost({ SQL: 'select connection_id()' }));
  await processlist.rested(Number(id));
  proxy.partition();
  const reply = await gateway.dbPost({ SQL: 'select 2', TIMEOUT: 600 }, named('never'));
  assert.equal(outcomeOf(reply), '503 DEADLINE_WAITING not_executed');
  await accessLine('never');
  assert.doesNotMatch(gateway.log(), /slow statement.* request_id=never /);
});

describe('where a gateway or a worker ends', () => {
  let other: Gateway;
  const opened: WorkerConnection[] = [];
  before(async () => {
    const own = { ...settings, workers: 2, drain_timeout: '0s', slow_query: '1s' };
    other = await startGateway({ database: proxy.target, settings: own });
  });
  after(async () => {
    for (const { socket } of opened) socket.destroy();
    await other?.stop();
  });

  /** Opens a connection at another worker than that one. */
  async function openAway(from?: WorkerConnection): Promise<WorkerConnection> {
    const connection = await openBeside(other.port, from === undefined ? [] : [from.worker]);
    opened.push(connection);
    return connection;
  }

  test('a worker that dies takes its requests along, and the log and a counter have their number', async () => {
    const sound = await openAway();
    const asked = [await openAway(sound), await openAway(sound), await openAway(sound)];
    for (const { send } of asked) {
      send(formatRequest('POST', '/db', { SQL: 'select sleep(29)' }));
    }
    // The other worker answers, so that the dying one's last report has these requests alone.
    await eventually('they are reported', async () => {
      const scraped = await openAway(asked[0]);
      scraped.send(formatRequest('GET', '/metrics'));
      const samples = parseExposition((await scraped.reply()).body.toString());
      const inFlight = (slot: string) => sumOf(samples, 'dbhttpd_requests_in_flight', { slot });
      return inFlight('0') === 3 || inFlight('1') === 3;
    });
    const lister = await openAway(asked[0]);
    lister.send(formatRequest('GET', '/v1/requests'));
    const { requests } = JSON.parse((await lister.reply()).body.toString()) as {
      requests: { id: string }[];
    };
    const worker = Number(requests[0]?.id.split('-')[1]);
    assert.ok(other.workers().includes(worker));
    process.kill(worker, 'SIGKILL');
    await Promise.all(asked.map(({ reply }) => assert.rejects(reply())));
    const line = await logLine(/ warn .*a worker ended .*SIGKILL/, other);
    assert.match(line, new RegExp(` pid=${worker} .* requests_lost=3 counted_ms_ago=\\d+$`));
    const lost = () => readMetric(other, 'dbhttpd_requests_lost_total');
    assert.equal(await eventually('a scrape', lost), 3);
  });

  test('events that a worker counted more than a second before its death are in the next scrape, though no scrape came before', async () => {
    const asked = await openAway();
    const missing = () => readMetric(other, 'dbhttpd_failures_total', { code: 'NOT_FOUND' });
    const missingBefore = await missing();
    const answer = async (request: string) => {
      asked.send(request);
      return (await asked.reply()).status;
    };
    assert.equal(await answer(formatRequest('GET', '/nothing')), 404);
    // A worker reports every second, which has no setting: its report is due while this runs, and sent before it answers once more.
    const SQL = 'select sleep(1.2)';
    const id = { 'X-Request-ID': 'counted' };
    assert.equal(await answer(formatRequest('POST', '/db', { SQL }, id)), 200);
    assert.equal(await answer(formatRequest('POST', '/db', { SQL: 'select 1' })), 200);
    const line = await logLine(/slow statement.* request_id=counted /, other);
    const worker = Number(/\[(\d+) w\d\]/.exec(line)?.[1]);
    assert.ok(other.workers().includes(worker), line);
    process.kill(worker, 'SIGKILL');
    await gone(worker);
    await eventually('a scrape', async () => (await missing()) === missingBefore + 1);
  });

  test('a write that a drain cannot wait for has its line', async () => {
    const SQL = 'insert into t select sleep(20)';
    const reply = other.dbPost({ SQL, TIMEOUT: 1500 }, named('drained'));
    await eventually('it runs', () => proxy.statements.includes(SQL));
    process.kill(other.pid, 'SIGTERM');
    assert.equal(outcomeOf(await reply), '504 DEADLINE_RUNNING unknown');
    await logLine(/ outcome=unknown request=drained /, other);
  });
});
