// `coalesce = on`: what is never answered by another's execution, because its answer could be another one.
// Must not know how reads are matched: the proxy shows what reached MySQL.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { askTogether, timesSent } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let proxy: ProxiedDatabase;
let gateway: Gateway;
let coalescedBefore = 0;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table t (id int primary key, v varchar(50), d decimal(30, 10));
    insert into t values (1, 'é', 0.1), (2, 'b', 2), (3, null, 3);
    create function own(n int) returns int deterministic return n`);
  proxy = await startProxiedDatabase(database);
  const settings = { workers: 1, pool: 1, coalesce: 'on' };
  gateway = await startGateway({ database: proxy.target, settings });
});
beforeEach(async () => {
  coalescedBefore = await readMetric(gateway, 'dbhttpd_coalesced_requests_total');
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database.stop();
});

const times = <Item>(count: number, item: Item) => Array.from({ length: count }, () => item);
const coalesced = async () =>
  (await readMetric(gateway, 'dbhttpd_coalesced_requests_total')) - coalescedBefore;

test('what differs in parameters, options or a blank runs by itself', async () => {
  const SQL = 'select d from t where id = ?';
  const requests = [
    { SQL, PARAMS: [1] },
    { SQL, PARAMS: ['1'] },
    { SQL, PARAMS: [2] },
    { SQL: `${SQL} `, PARAMS: [1] },
    { SQL, PARAMS: [1], NUMBERS: 'string' },
    { SQL, PARAMS: [1], READ_ONLY: true },
    { SQL, PARAMS: [1], CLIENT_INFO: true },
    { SQL, PARAMS: [1], ROLLBACK_ON_ERROR: true },
  ];
  const alone = [];
  for (const request of requests) alone.push(await gateway.dbPost(request));
  const replies = await askTogether(gateway, proxy, requests);
  for (const [at, reply] of replies.entries()) assert.deepEqual(reply.body, alone[at]?.body);
  assert.equal(await coalesced(), 0);
  await askTogether(
    gateway,
    proxy,
    requests.flatMap((request) => [request, request]),
  );
  // Metadata and ROLLBACK_ON_ERROR ask for more than the statement.
  assert.equal(await coalesced(), requests.length - 2);
});

const neverShared = [
  'select now(6)',
  'select current_timestamp',
  'select rand()',
  'select uuid()',
  'select sleep(0)',
  'select connection_id()',
  'select current_user',
  'select last_insert_id()',
  'select @x',
  'select @@autocommit',
  'select own(1)',
  'select * from t for update',
  'select * from t lock in share mode',
  'select 1; select 1',
  'show tables',
  'update t set v = v where id = 3',
];

test('clock, chance, session, locks, unknown functions, several statements, writes: never shared', async () => {
  for (const SQL of neverShared) {
    const sentBefore = timesSent(proxy, SQL);
    const replies = await askTogether(gateway, proxy, times(3, { SQL }));
    for (const reply of replies) assert.equal(reply.status, 200, SQL);
    assert.equal(timesSent(proxy, SQL) - sentBefore, 3, SQL);
  }
  assert.equal(await coalesced(), 0);
});

test('off by default: every request has its own execution', async () => {
  const SQL = 'select count(*) from t';
  const sentBefore = timesSent(proxy, SQL);
  const plain = await startGateway({ database: proxy.target, settings: { workers: 1, pool: 1 } });
  const replies = await askTogether(plain, proxy, times(5, { SQL }));
  assert.deepEqual(replies.map(cellOf), times(5, 3));
  assert.equal(timesSent(proxy, SQL) - sentBefore, 5);
  assert.equal(await readMetric(plain, 'dbhttpd_coalesced_requests_total'), 0);
  await plain.stop();
});
