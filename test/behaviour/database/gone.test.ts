// A database that goes and comes back: one line each, few attempts without requests, and served again at once.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { fillPool } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const pool = 4;
/** The contract has a second; four times as much is for a busy machine. */
const soon = { timeoutMs: 4000 };

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool },
  { prepare: createGate },
);

let logBefore = 0;
let connectionsBefore = 0;

/** Five connections: the pool's four, and the one that kills. */
beforeEach(async () => {
  await fillPool(gateway, pool);
  await eventually('control', isControlled);
  logBefore = gateway.log().length;
  connectionsBefore = proxy.connections().total;
});
afterEach(() => proxy.refuse(false));

const serves = async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200;
const isControlled = async () => (await readMetric(gateway, 'dbhttpd_control_connected')) === 1;
const attempts = () => proxy.connections().total - connectionsBefore;
const linesAbout = (what: RegExp) =>
  gateway
    .log()
    .slice(logBefore)
    .split('\n')
    .filter((line) => what.test(line));

/** From now on the database refuses all connections. It has ended the open ones. */
function goAway(): void {
  proxy.refuse(true);
  proxy.cutAll();
}

test('one line when it goes and one when it is back, under load, and served within a second', async () => {
  const from = performance.now();
  goAway();
  await eventually('the line', () => linesAbout(/cannot connect/).length > 0);
  const knownAt = performance.now();
  await eventually('it is tried again and again', async () => {
    await Promise.all([gateway.dbPost({ SQL: 'select 1' }), gateway.get('/readyz')]);
    return attempts() >= 12;
  });
  const gone = linesAbout(/ (database|connections?) /);
  assert.equal(gone.length, 1, gone.join('\n'));
  assert.match(
    gone[0] ?? '',
    / warn .*cannot connect to the database address=\S+ account=\S+ reason=.* lost=5 in_use=0$/,
  );
  const minMs = performance.now() - knownAt;
  proxy.refuse(false);
  await eventually('served', serves, soon);
  await eventually('the line of its return', () => linesAbout(/is back/).length === 1);
  const maxMs = performance.now() - from;
  const [back = ''] = linesAbout(/is back/);
  const [, seconds, tried] = /after_s=([\d.]+) attempts=(\d+)/.exec(back) ?? [];
  const awayMs = Number(seconds) * 1000;
  assert.ok(awayMs >= minMs - 1 && awayMs <= maxMs + 1, `${minMs} to ${maxMs} ms: ${back}`);
  assert.ok(Number(tried) > 3, back);
  assert.equal(linesAbout(/cannot connect/).length, 1);
});

test('without requests it is tried less and less often, and a request after its return is served within a second', async () => {
  goAway();
  assert.equal((await gateway.dbPost({ SQL: 'select 1' })).status, 503);
  const from = performance.now();
  const first = attempts();
  const each = 5;
  await eventually('pool and control try again', () => attempts() >= first + 2 * each);
  // Each of the two waits for 50 ms, 100 ms, …, and at least for half of it.
  const minMs = 25 * (2 ** (each - 1) - 1);
  const tookMs = performance.now() - from;
  assert.ok(tookMs >= minMs, `${attempts()} attempts within ${tookMs} ms`);
  proxy.refuse(false);
  // Only an attempt that has just failed lets the next one wait, for a second at most.
  await eventually('it serves', serves, soon);
});

test('if connections are cut while the database remains, a warning counts those with a statement on them', async () => {
  const gate = await closeGate(database);
  try {
    const SQL = `select ${gate.zero}`;
    const running = gateway.dbPost({ SQL });
    await eventually('it is sent', () => proxy.statements.includes(SQL));
    // The gateway itself may use another one for a moment.
    const busy = { state: 'busy' };
    await eventually('nothing else runs', async () => {
      return (await readMetric(gateway, 'dbhttpd_pool_connections', busy)) === 1;
    });
    proxy.cutAll();
    assert.equal((await running).status, 502);
  } finally {
    await gate.open();
  }
  await eventually('the line', () => linesAbout(/were lost/).length === 1);
  const [line = ''] = linesAbout(/were lost/);
  assert.match(line, / warn .*connections to the database were lost count=5 in_use=1 /);
});

test('a readiness probe that finds the database back wakes all waiting requests', async () => {
  goAway();
  assert.equal((await gateway.dbPost({ SQL: 'select 1' })).status, 503);
  await eventually('both wait for longer than a second', () => attempts() >= 12);
  proxy.refuse(false);
  await eventually('ready', async () => (await gateway.get('/readyz')).status === 200, {
    timeoutMs: 8000,
  });
  await eventually('control', isControlled);
  await eventually('its line', () => linesAbout(/is back/).length === 1);
});
