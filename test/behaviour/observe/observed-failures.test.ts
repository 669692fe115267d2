// Whatever fails stands where an operator looks: in a counter that was there before, in the log, in the access log.
// Must not know how anything is counted.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { failureCodes, outcomes } from '../../../src/shared/failure-codes.ts';
import { fillPool, holdAnswer, occupy, waiting } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { parseExposition } from '../../support/exposition.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { exchange } from '../../support/http.ts';
import type { Settings } from '../../support/ini-text.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let proxy: ProxiedDatabase;
before(async () => {
  database = await startDatabase();
  await database.query('create table t (a int primary key)');
  proxy = await startProxiedDatabase(database);
});
after(async () => {
  await proxy.stop();
  await database.stop();
});

async function withGateway(settings: Settings, use: (gateway: Gateway) => Promise<void>) {
  const own = { workers: 1, pool: 2, access_log: 'json', ...settings };
  const gateway = await startGateway({ database: proxy.target, settings: own });
  try {
    await use(gateway);
  } finally {
    proxy.heal();
    proxy.release();
    await gateway.stop();
  }
}

const named = (id: string) => ({ headers: { 'X-Request-ID': id } });
const failures = (gateway: Gateway, code: string) =>
  readMetric(gateway, 'dbhttpd_failures_total', { code });
const outcomeCount = (gateway: Gateway, outcome: string) =>
  readMetric(gateway, 'dbhttpd_outcomes_total', { outcome });
const logLine = (gateway: Gateway, part: RegExp) =>
  eventually(`a line like ${part}`, () =>
    gateway
      .log()
      .split('\n')
      .find((line) => part.test(line)),
  );
const accessLine = (gateway: Gateway, id: string) =>
  eventually(`the line of ${id}`, () =>
    readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .find((line) => line.request_id === id),
  );

test('every series that an alert needs stands at 0 before its first event', async () => {
  await withGateway({ pool: 7 }, async (gateway) => {
    const { text } = await gateway.get('/metrics');
    const samples = parseExposition(text);
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
    assert.equal(samples.get(`dbhttpd_replies_cut_total{${own}}`), 0);
    assert.equal(samples.get(`dbhttpd_requests_lost_total{${own}}`), 0);
    const backend = `backend="127.0.0.1:${proxy.port}"`;
    assert.equal(samples.get(`dbhttpd_pool_connections_max{${own},${backend}}`), 7);
  });
});

test('a scrape tells the build, the start, and how many descriptors there are', async () => {
  await withGateway({}, async (gateway) => {
    const { text } = await gateway.get('/metrics');
    const { version } = JSON.parse(
      readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'),
    ) as { version: string };
    const node = process.versions.node;
    const samples = parseExposition(text);
    const build = `dbhttpd_build_info{section="world",version="${version}",node="${node}"}`;
    assert.equal(samples.get(build), 1, text);
    const startedAt = samples.get('process_start_time_seconds{section="world"}') ?? 0;
    assert.ok(Math.abs(startedAt - Date.now() / 1000) < 30, `${startedAt}`);
    const open = samples.get('process_open_fds{section="world",slot="0"}') ?? 0;
    const most = samples.get('process_max_fds{section="world",slot="0"}') ?? 0;
    assert.ok(open > 10 && open < most, `${open} of ${most}`);
  });
});

test('a full queue, a deadline while waiting and one while running are counted apart, and the access log has the code', async () => {
  await withGateway({ pool: 1, queue: 1 }, async (gateway) => {
    await occupy(gateway, proxy);
    const waits = gateway.dbPost({ SQL: 'select 1', TIMEOUT: 3_000 }, named('waits'));
    await waiting(gateway, 1);
    const full = await gateway.dbPost({ SQL: 'select 1' }, named('full'));
    assert.equal(outcomeOf(full), '503 QUEUE_FULL not_executed');
    assert.equal(outcomeOf(await waits), '503 DEADLINE_WAITING not_executed');
    proxy.release();
    const runs = await gateway.dbPost({ SQL: 'select sleep(20)', TIMEOUT: 500 }, named('runs'));
    assert.equal(outcomeOf(runs), '504 DEADLINE_RUNNING failed');
    const refused = await gateway.get('/nothing', named('refused'));
    assert.equal(refused.status, 404);
    const codes = ['QUEUE_FULL', 'DEADLINE_WAITING', 'DEADLINE_RUNNING', 'NOT_FOUND'];
    for (const code of codes) assert.equal(await failures(gateway, code), 1, code);
    const told = ['full', 'waits', 'runs', 'refused'].map((id) => accessLine(gateway, id));
    assert.deepEqual(
      (await Promise.all(told)).map((line) => line.code),
      codes,
    );
    assert.equal(await outcomeCount(gateway, 'not_executed'), 2);
  });
});

test('what is no HTTP is counted by its code too', async () => {
  await withGateway({}, async (gateway) => {
    assert.equal((await exchange(gateway.port, 'NO HTTP\r\n\r\n')).status, 400);
    assert.equal(await failures(gateway, 'BAD_REQUEST'), 1);
  });
});

test('several statements of which one fails count as the document says: partial, rolled back, error', async () => {
  await withGateway({}, async (gateway) => {
    await gateway.dbPost({ SQL: 'insert into t values (1); insert into nowhere values (1)' });
    await gateway.dbPost({
      SQL: 'begin; insert into t values (2); insert into nowhere values (2)',
      ROLLBACK_ON_ERROR: true,
    });
    await gateway.dbPost({ SQL: 'select nothing' });
    const counts = ['partial', 'rolled_back', 'error'].map((one) => outcomeCount(gateway, one));
    assert.deepEqual(await Promise.all(counts), [1, 1, 1]);
  });
});

test('a write whose outcome is unknown has a line, with its request, its reason and its shape', async () => {
  await withGateway({}, async (gateway) => {
    await fillPool(gateway, 2);
    const SQL = "insert into t select 11 from (select sleep(20) as x, 'secret') as s";
    const killed = await gateway.dbPost({ SQL, TIMEOUT: 500 }, named('killed'));
    assert.equal(outcomeOf(killed), '504 DEADLINE_RUNNING unknown');
    const line = await logLine(gateway, / warn .* outcome=unknown request=killed /);
    assert.match(line, / code=DEADLINE_RUNNING statement="insert into t select \? /);

    const insert = 'insert into t values (12)';
    const ask = () => gateway.dbPost({ SQL: insert }, named('lost'));
    const { reply } = await holdAnswer(proxy, insert, ask);
    proxy.cutAll();
    assert.equal(outcomeOf(await reply), '502 CONNECTION_LOST unknown');
    await logLine(gateway, / outcome=unknown request=lost code=CONNECTION_LOST /);
    assert.equal(await outcomeCount(gateway, 'unknown'), 2);
    assert.doesNotMatch(gateway.log(), /secret/);
  });
});

test('a write that a drain cannot wait for has its line', async () => {
  const settings = { drain_timeout: '0s', statement_timeout: '700ms' };
  const log = { text: '' };
  await withGateway(settings, async (gateway) => {
    const SQL = 'insert into t select sleep(5)';
    const reply = gateway.dbPost({ SQL }, named('drained'));
    await eventually('it runs', () => proxy.statements.includes(SQL));
    process.kill(gateway.pid, 'SIGTERM');
    assert.equal(outcomeOf(await reply), '504 DEADLINE_RUNNING unknown');
    await eventually('its line', () => {
      log.text = gateway.log();
      return log.text.includes('outcome=unknown request=drained');
    });
  });
});

test('a reply that max_result_bytes cuts after its first byte has a line and is counted', async () => {
  await withGateway({ max_result_bytes: 200_000 }, async (gateway) => {
    const SQL = "select repeat('x', 60000) union all select repeat('y', 60000) ".concat(
      "union all select repeat('z', 60000) union all select repeat('w', 60000)",
    );
    await assert.rejects(gateway.dbPost({ SQL }, named('long')));
    const line = await logLine(gateway, / warn .*a reply was cut/);
    assert.match(line, / code=RESULT_TOO_LARGE request=long rows=\d bytes=\d+/);
    assert.equal(await readMetric(gateway, 'dbhttpd_replies_cut_total'), 1);
    assert.equal(await failures(gateway, 'RESULT_TOO_LARGE'), 1);
    assert.equal((await accessLine(gateway, 'long')).code, 'RESULT_TOO_LARGE');
  });
});

test('what never reached MySQL is told as no slow statement, however long its connection took', async () => {
  await withGateway({ pool: 1, slow_query: '200ms' }, async (gateway) => {
    await gateway.dbPost({ SQL: 'select 1' });
    // A session that lay idle for a second is asked for a sign of life before it is used.
    await pause(1100);
    proxy.partition();
    const reply = await gateway.dbPost({ SQL: 'select 2', TIMEOUT: 600 }, named('never'));
    assert.equal(outcomeOf(reply), '503 DEADLINE_WAITING not_executed');
    await accessLine(gateway, 'never');
    assert.doesNotMatch(gateway.log(), /slow statement/);
  });
});

test('a worker that dies takes its requests along, and the log and a counter tell how many', async () => {
  await withGateway({ pool: 4 }, async (gateway) => {
    const [worker = 0] = gateway.workers();
    const asked = [1, 2, 3].map(() =>
      gateway.dbPost({ SQL: 'select sleep(30)' }).catch(() => 'lost' as const),
    );
    const inFlight = () => readMetric(gateway, 'dbhttpd_requests_in_flight');
    await eventually('they run', async () => (await inFlight()) >= 3);
    // The worker's next report, a second later when it lives well, comes without a scrape.
    await pause(3000);
    process.kill(worker, 'SIGKILL');
    assert.deepEqual(await Promise.all(asked), ['lost', 'lost', 'lost']);
    const line = await logLine(gateway, / warn .*a worker ended .*SIGKILL/);
    assert.match(line, new RegExp(` pid=${worker} .* requests_lost=3 counted_ms_ago=\\d+$`));
    const lost = () => readMetric(gateway, 'dbhttpd_requests_lost_total');
    assert.equal(await eventually('a scrape', lost), 3);
  });
});
