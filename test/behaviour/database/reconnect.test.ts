// An idle connection that the server or the network has closed costs no request anything; a database that is away gets few attempts.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { fillPool } from '../../support/busy-pool.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const pool = 4;
const queue = 5;

const { gateway, database, proxy } = useProxiedGateway({ workers: 1, pool, queue });

afterEach(async () => {
  proxy.refuse(false);
  proxy.heal();
  await eventually('service is back', serves);
});

const ask = (SQL: string) => gateway.dbPost({ SQL });
const serves = async () => (await ask('select 1')).status === 200;

describe('one session, which the server closes when it lies idle for a second', () => {
  let single: Gateway;
  before(async () => {
    const settings = { workers: 1, pool: 1, init_sql: 'set wait_timeout = 1' };
    single = await startGateway({ database: proxy.target, settings });
  });
  after(() => single?.stop());

  const askSingle = async () =>
    Number(cellOf(await single.dbPost({ SQL: 'select connection_id()' })));

  test('after wait_timeout the next request works, and none is ever a 502', async () => {
    const processlist = await openProcesslist(database);
    for (const hearsOfIt of [true, false]) {
      const id = await askSingle();
      if (!hearsOfIt) proxy.partition('from server');
      proxy.admit();
      await eventually('the server has closed the connection', async () => {
        return (await processlist.connections()).every((thread) => thread.id !== id);
      });
      assert.notEqual(await askSingle(), id);
      proxy.heal();
    }
    processlist.close();
  });

  test('killed by an administrator while idle: the next request works', async () => {
    const id = await askSingle();
    await database.query(`kill ${id}`);
    assert.notEqual(await askSingle(), id);
  });
});

test('an idle connection that a firewall has forgotten is replaced before a statement is sent on it', async (t) => {
  const settings = { workers: 1, pool: 1 };
  const single = await startGateway({ database: proxy.target, settings });
  t.after(single.stop);
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  const askSingle = async () =>
    Number(cellOf(await single.dbPost({ SQL: 'select connection_id()' })));
  const id = await askSingle();
  await processlist.rested(id);
  // Only the open connections are cut off; new ones find their way.
  proxy.partition();
  proxy.admit();
  assert.notEqual(await askSingle(), id);
});

test('idle connections that a firewall has forgotten: one is asked in vain, and the request does not meet another one', async (t) => {
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  // The second statement reads what may be left in a session, so a reset comes before it.
  for (const SQL of ['select 5', 'select @@autocommit + 4']) {
    const settings = { workers: 1, pool };
    const many = await startGateway({ database: proxy.target, settings });
    t.after(many.stop);
    await fillPool(many, pool);
    await processlist.rested(Number(cellOf(await many.dbPost({ SQL: 'select connection_id()' }))));
    proxy.partition();
    proxy.admit();
    assert.equal(cellOf(await many.dbPost({ SQL })), 5);
    proxy.heal();
  }
});

test('all connections cut while idle: no request notices', async () => {
  for (const how of ['fin', 'reset'] as const) {
    await fillPool(gateway, pool);
    proxy.cutAll(how);
    const replies = await Promise.all([1, 2, 3].map(() => ask('select 5')));
    assert.deepEqual(replies.map(cellOf), [5, 5, 5]);
  }
});

test('a database that is away is not stormed: one attempt at a time, at growing intervals', async () => {
  await fillPool(gateway, pool);
  proxy.refuse(true);
  const connectionsBefore = proxy.connections().total;
  proxy.cutAll();
  const from = performance.now();
  const attempts = () => proxy.connections().total - connectionsBefore;
  let asked = 0;
  await eventually('many are refused', async () => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => ask('select 1')));
    for (const reply of replies) assert.match(outcomeOf(reply), /^503 \w+ not_executed$/);
    asked += replies.length;
    return asked >= 100 && attempts() >= 14;
  });
  const seconds = (performance.now() - from) / 1000;
  // At first as many as the pool has. Then pool and control back off: 50 ms, 100 ms, … and twice a second for requests.
  assert.ok(attempts() <= 24 + 2 * seconds, `${attempts()} in ${seconds} s, ${asked} requests`);
  proxy.refuse(false);
  await eventually('service is back', serves, { timeoutMs: 8000 });
});

test('partitioned: deadlines hold, and the heal is enough', async () => {
  assert.equal(cellOf(await ask('select 5')), 5);
  proxy.partition();
  const impatient = { SQL: 'select 1', TIMEOUT: 300 };
  const replies = [];
  for (let n = 0; n < pool + 2; n += 1) replies.push(await gateway.dbPost(impatient));
  const outcomes = replies.map(outcomeOf);
  // An idle connection may be found dead before anything is sent on it.
  for (const outcome of outcomes) {
    assert.match(outcome, /^50(4 DEADLINE_RUNNING failed|3 \w+ not_executed)$/);
  }
  assert.match(outcomes.at(-1) ?? '', /^503/);
  proxy.heal();
  await eventually('well again', serves);
});

test('a handshake that takes its time is waited for within the deadline', async () => {
  // As above.
  await fillPool(gateway, pool);
  proxy.partition();
  proxy.cutAll();
  const asked = ask('select 5');
  const impatient = await gateway.dbPost({ SQL: 'select 6', TIMEOUT: 200 });
  assert.equal(outcomeOf(impatient), '503 DEADLINE_WAITING not_executed');
  proxy.heal();
  assert.equal(cellOf(await asked), 5);
});

test('the number of waiting requests is bounded while no connection can be opened', async () => {
  // A cut that meets an attempt to connect makes it fail: then requests are refused for that reason, and none waits.
  await fillPool(gateway, pool);
  proxy.partition();
  proxy.cutAll();
  const crowd = 30;
  let refused = 0;
  const asked = Array.from({ length: crowd }, async () => {
    const reply = await ask('select 1');
    if (reply.status === 200) return;
    assert.match(outcomeOf(reply), /^503 \w+ not_executed$/);
    if (outcomeOf(reply).includes('QUEUE_FULL')) refused += 1;
  });
  await eventually('the rest is refused', () => refused >= crowd - queue - pool);
  proxy.heal();
  await Promise.all(asked);
});

test('no connection is left when the gateway stops', async () => {
  const account = { user: 'stopping', password: 'pw' };
  await database.query(
    `create user stopping identified by 'pw'; grant all on ${database.name}.* to stopping`,
  );
  const connections = async () => {
    const sql = "select id from information_schema.processlist where user = 'stopping'";
    return (await database.query(sql)).length;
  };
  const settings = { workers: 1, pool: 3 };
  const stopping = await startGateway({ database: { ...proxy.target, ...account }, settings });
  try {
    await fillPool(stopping, 3);
    await eventually('control too', async () => (await connections()) >= 4);
  } finally {
    await stopping.stop();
  }
  await eventually('all are gone', async () => (await connections()) === 0);
  await database.query('drop user stopping');
});
