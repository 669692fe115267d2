// One object for people: workers, servers, sums, the last minutes and the last errors, over all workers and their deaths.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { test } from 'node:test';
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { eventually } from '../../support/eventually.ts';
import { getReport } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 2, pool: 4 },
  {
    prepare: async (prepared) => {
      await prepared.query('create table people (id int primary key, secret varchar(40))');
    },
  },
);

async function ask(): Promise<Stats> {
  const reply = await getReport(gateway, '/v1/stats');
  assert.equal(reply.status, 200, reply.text);
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  assert.equal(reply.headers.connection, 'close');
  return reply.json<Stats>();
}

const sql = (text: string, agent?: Agent) =>
  gateway.post('/v1/query', { sql: text }, agent === undefined ? {} : { agent });

test('workers, servers and sums of the whole instance', async () => {
  const okBefore = (await ask()).totals.outcomes.ok ?? 0;
  for (let n = 0; n < 20; n += 1) assert.equal((await sql(`select ${n}`)).status, 200);
  const stats = await eventually('all twenty are counted', async () => {
    const reported = await ask();
    return reported.totals.outcomes.ok === okBefore + 20 && reported;
  });
  assert.equal(stats.section, 'world');
  assert.ok(stats.ready);
  assert.deepEqual(
    stats.workers.map(({ slot, state, restarts }) => ({ slot, state, restarts })),
    [
      { slot: 0, state: 'serving', restarts: 0 },
      { slot: 1, state: 'serving', restarts: 0 },
    ],
  );
  assert.deepEqual(stats.workers.map(({ pid }) => pid).sort(), gateway.workers().sort());
  assert.ok(
    stats.workers.every(({ memory_bytes, cpu_seconds }) => memory_bytes > 1e7 && cpu_seconds > 0),
  );
  assert.ok(stats.workers.every(({ event_loop_lag_ms }) => (event_loop_lag_ms ?? -1) >= 0));
  const [backend, ...others] = stats.backends;
  assert.deepEqual(others, []);
  assert.equal(backend?.backend, `${database.host}:${database.port}`);
  assert.equal(backend?.role, null);
  assert.equal(backend?.connections.max, 8);
  assert.ok(Math.abs(Date.parse(stats.now) - Date.now()) < 60_000);
  assert.ok(Date.parse(stats.started_at) < Date.parse(stats.now));
});

test('the last errors have numbers and shapes, without a literal', async (t) => {
  // With one connection, one worker answers all of them. With two workers, the first might record its error after the client has had the
  // reply and the second has recorded the next one.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  assert.equal((await sql("insert into people values (1, 'hush-hush')", agent)).status, 200);
  assert.equal((await sql("insert into people values (1, 'hush-hush')", agent)).status, 409);
  assert.equal((await sql('no such sql "hush-hush" 4711', agent)).status, 422);
  const unknownField = { sql: 'select 1', hush: 'hush-hush' };
  assert.equal((await gateway.post('/v1/query', unknownField, { agent })).status, 400);
  const { errors } = await eventually('they are reported', async () => {
    const reported = await ask();
    return reported.errors.length >= 3 && reported;
  });
  assert.deepEqual(
    errors.map(({ code, errno, status, outcome }) => ({ code, errno, status, outcome })),
    [
      { code: 'UNKNOWN_FIELD', errno: null, status: 400, outcome: 'not_executed' },
      { code: null, errno: 1064, status: 422, outcome: 'error' },
      { code: null, errno: 1062, status: 409, outcome: 'error' },
    ],
  );
  const named = errors.map(({ error_name, by_data }) => [error_name, by_data]);
  assert.deepEqual(named, [
    [null, false],
    ['ER_PARSE_ERROR', false],
    ['ER_DUP_ENTRY', true],
  ]);
  assert.equal(errors[2]?.shape, 'insert into people values (?)');
  assert.equal(errors[2]?.section, 'world');
  assert.doesNotMatch(JSON.stringify(errors), /hush-hush|4711/);
});

test('the last minutes are there for later readers, and sums survive a worker', async () => {
  const before = await ask();
  const [victim = 0] = gateway.workers();
  process.kill(victim, 'SIGKILL');
  const later = async () => {
    await sql('select 1');
    const reported = await ask();
    const isUp = reported.workers.every(({ state }) => state === 'serving');
    const rates = reported.history.outcomes.ok ?? [];
    return isUp && rates.some((rate) => rate !== null && rate > 0) && reported;
  };
  // A point of the past takes two seconds.
  const stats = await eventually('the slot is up again, and seen in the past', later, {
    everyMs: 100,
  });
  assert.deepEqual(stats.workers.map(({ restarts }) => restarts).sort(), [0, 1]);
  assert.ok((stats.totals.outcomes.ok ?? 0) >= (before.totals.outcomes.ok ?? 0));
  const { history } = stats;
  const lines = [
    ...Object.values(history.outcomes),
    ...Object.values(history.latency_ms),
    history.waiting,
  ];
  for (const line of lines) assert.equal(line.length, history.at.length);
  assert.equal(history.interval_seconds, 2);
  assert.ok(history.latency_ms.p50.some((ms) => ms !== null && ms > 0 && ms < 60_000));
  assert.ok(history.connections.max.every((max) => max !== null && max <= 8));
});

test('a worker that hangs delays no answer', async () => {
  const [hung = 0] = gateway.workers();
  process.kill(hung, 'SIGSTOP');
  try {
    const stats = await eventually('a sound worker says who hangs', async () => {
      const reply = await gateway.get('/v1/stats', { timeoutMs: 1000 });
      const reported = reply.json<Stats>();
      return reported.workers.some(({ state }) => state === 'silent') && reported;
    });
    assert.equal(stats.workers.find(({ pid }) => pid === hung)?.state, 'silent');
    assert.ok(stats.ready);
  } finally {
    process.kill(hung, 'SIGCONT');
  }
});
