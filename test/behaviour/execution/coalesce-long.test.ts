// `coalesce = on`: replies too long to be held back, readers that do not read, and a stop meanwhile.
// Must not know how reads are matched: the proxy shows what reached MySQL.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { askTogether, holdAnswer, occupy, timesSent, waiting } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';

let database: Database;
let proxy: ProxiedDatabase;
let gateway: Gateway;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table t (id int primary key, v varchar(200));
    insert into t with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
      select n, repeat('x', 180) from c`);
  proxy = await startProxiedDatabase(database);
  const settings = { workers: 1, pool: 1, coalesce: 'on' };
  gateway = await startGateway({ database: proxy.target, settings });
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database.stop();
});

for (const [what, rows] of [
  ['as large as is held back, nearly', 330],
  ['larger than what is held back', 900],
] as const) {
  test(`a reply ${what}: whole for each`, async () => {
    const large = `select id, v from t where id <= ${rows} order by id`;
    const requests = Array.from({ length: 5 }, () => ({ SQL: large }));
    const [first, ...others] = await askTogether(gateway, proxy, requests);
    assert.ok(first);
    assert.equal(rowsOf(first).length, rows);
    for (const other of others) assert.deepEqual(other.body, first.body);
    const isWhole = first.headers['content-length'] !== undefined;
    assert.equal(timesSent(proxy, large), isWhole ? 1 : 5);
    assert.equal(isWhole, rows === 330);
  });
}

test('nobody waits for a reader of a long reply who does not read', async () => {
  const long = 'select a.id, a.v from t a join t b on b.id <= 100';
  const settings = { workers: 1, pool: 2, coalesce: 'on' };
  const streaming = await startGateway({ database: proxy.target, settings });
  await occupy(streaming, proxy);
  await occupy(streaming, proxy);
  const client = await openRaw(streaming.port);
  client.socket.pause();
  const query = encodeURIComponent(JSON.stringify({ SQL: long }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await waiting(streaming, 1);
  const rest = [1, 2].map(() => streaming.dbPost({ SQL: long }));
  await waiting(streaming, 3);
  proxy.release();
  for (const reply of await Promise.all(rest)) assert.equal(rowsOf(reply).length, 90_000);
  client.reset();
  await streaming.stop();
});

test('the gateway stops: those who wait behind another are answered', async () => {
  const SQL = 'select count(*) from t';
  const settings = { workers: 1, pool: 1, coalesce: 'on' };
  const stopping = await startGateway({ database: proxy.target, settings });
  const held = await holdAnswer(proxy, "select 'first'", () =>
    stopping.dbPost({ SQL: "select 'first'" }),
  );
  const rest = Array.from({ length: 4 }, () => stopping.dbPost({ SQL }));
  await waiting(stopping, 4);
  const stopped = stopping.stop();
  await eventually('it drains', () => stopping.log().includes('drain'));
  proxy.release();
  assert.equal(cellOf(await held.reply), 'first');
  for (const reply of await Promise.all(rest)) assert.equal(cellOf(reply), 900);
  await stopped;
  assert.equal(timesSent(proxy, SQL), 1);
});

test('a stop that ends a long read begins it for none of those who waited for it', async () => {
  const stopping = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 2, coalesce: 'on', drain_timeout: '100ms' },
  });
  const long =
    'select sum(length(a.v)) from t a, t b, t c, t d where a.id + b.id + c.id + d.id < 0';
  // The second one is free when the stop comes, and used so lately that it would not be asked first.
  await occupy(stopping, proxy);
  await occupy(stopping, proxy);
  const replies = Array.from({ length: 5 }, () => stopping.dbPost({ SQL: long }));
  await waiting(stopping, replies.length);
  proxy.release();
  await eventually('one of them runs', () => timesSent(proxy, long) === 1);
  await stopping.stop();
  assert.deepEqual((await Promise.all(replies)).map(outcomeOf), [
    '502 STOPPING failed',
    ...Array.from({ length: 4 }, () => '503 STOPPING not_executed'),
  ]);
  assert.equal(timesSent(proxy, long), 1);
});
