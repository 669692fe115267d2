// The limits of a client: sections, reads, rows, bytes and time; and that clients do not share the answers of reads.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { occupy, timesSent, waiting } from '../../support/busy-pool.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { postAsDriver } from '../../support/driver.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';

const sql = 'sql, batch, transaction, drivers';
const file = createClientsFile({
  all: { allow: sql },
  other: { allow: sql },
  shop: { allow: sql, sections: 'shop' },
  both: { allow: sql, sections: 'shop, world' },
  reader: { allow: sql, read_only: 'on' },
  rows: { allow: sql, max_rows: '2' },
  more: { allow: sql, max_rows: '100' },
  bytes: { allow: sql, max_result_bytes: '1KiB' },
  hasty: { allow: sql, statement_timeout: '300ms' },
  impatient: { allow: sql, max_wait: '50ms' },
  anonymous: { allow: 'metrics' },
});
let databases: readonly Database[] = [];
let proxy: ProxiedDatabase;
let gateway: Gateway;
before(async () => {
  const [world, shop] = [await startDatabase(), await startDatabase()];
  databases = [world, shop];
  for (const [at, database] of databases.entries()) {
    await database.query(
      `create table t (v varchar(20)); insert into t values ('${at === 0 ? 'world' : 'shop'}')`,
    );
  }
  proxy = await startProxiedDatabase(world);
  gateway = await startGateway({
    database: proxy.target,
    settings: {
      workers: 1,
      pool: 1,
      max_rows: 10,
      coalesce: 'on',
      drivers: 'planetscale',
      clients: file.path,
    },
    beside: { shop: { database: shop, settings: { pool: 2 } }, hidden: { database: shop } },
  });
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  for (const database of databases) await database.stop();
  file.remove();
});

const as = (name: string) => ({ headers: bearing(tokenOf(name)) });
const query = (name: string, body: object): Promise<Reply> =>
  gateway.post('/v1/query', body, as(name));
const codeOf = (reply: Reply) => {
  const { code, CODE } = reply.json<{ code?: string; CODE?: string }>();
  return `${reply.status} ${code ?? CODE}`;
};

async function cellOf(asked: Promise<Reply>): Promise<unknown> {
  const reply = await asked;
  assert.equal(reply.status, 200, reply.text);
  return reply.json<{ rows: unknown[][] }>().rows[0]?.[0];
}

test('a request without a section goes to the first one that its client may use', async () => {
  const read = { sql: 'select v from t' };
  assert.equal(await cellOf(query('all', read)), 'world');
  assert.equal(await cellOf(query('shop', read)), 'shop');
  // In the order in which the sections are served.
  assert.equal(await cellOf(query('both', read)), 'world');
  assert.equal(await cellOf(query('both', { ...read, section: 'shop' })), 'shop');
  const batch = await gateway.post('/v1/batch', { statements: [read] }, as('shop'));
  assert.deepEqual(batch.json<{ results: { rows: unknown }[] }>().results[0]?.rows, [['shop']]);
  const db = await gateway.db({ SQL: read.sql }, as('shop'));
  assert.match(db.text, /\[\["shop"\]\]/);
  assert.match(db.text, /"SERVER":"shop"/);
  const held = await beginHeld(gateway, {}, as('shop'));
  assert.deepEqual(await held.rows(read.sql), [['shop']]);
  await held.rollback();
  const driver = await postAsDriver(gateway, { query: read.sql }, { password: tokenOf('shop') });
  const { rows } = driver.body.result as { rows: { values: string }[] };
  assert.equal(Buffer.from(rows[0]?.values ?? '', 'base64').toString(), 'shop');
});

test('a section that a client may not use is 403, and one that is not served is 400 without the names of others', async () => {
  const asks: readonly ((section: string) => Promise<Reply>)[] = [
    (section) => query('shop', { sql: 'select 1', section }),
    (section) =>
      gateway.post('/v1/batch', { statements: [{ sql: 'select 1' }], section }, as('shop')),
    (section) => gateway.post('/v1/transaction', { section }, as('shop')),
    (section) => gateway.post('/v1/transaction/commit', { transaction: 'x', section }, as('shop')),
    (section) => gateway.dbPost({ SQL: 'select 1', SERVER: section }, as('shop')),
    (section) => gateway.db({ SQL: 'select 1', SERVER: section }, as('shop')),
  ];
  for (const ask of asks) {
    const forbidden = await ask('hidden');
    assert.equal(codeOf(forbidden), '403 FORBIDDEN', forbidden.text);
    assert.match(forbidden.text, /hidden/);
    const unknown = await ask('nowhere');
    assert.equal(codeOf(unknown), '400 WRONG_SERVER');
    assert.doesNotMatch(unknown.text, /hidden|world|nowhere/);
  }
});

test('a read-only client writes nowhere, and the message names what is read-only', async () => {
  const write = { sql: "insert into t values ('written')" };
  const refusals = [
    await query('reader', write),
    await gateway.post('/v1/batch', { statements: [write] }, as('reader')),
    await gateway.dbPost({ SQL: write.sql }, as('reader')),
  ];
  for (const refused of refusals) {
    assert.equal(codeOf(refused), '403 READ_ONLY');
    assert.match(refused.text, /This client is read-only/);
  }
  const driver = await postAsDriver(gateway, { query: write.sql }, { password: tokenOf('reader') });
  assert.match(JSON.stringify(driver.body), /1792/);
  const held = await beginHeld(gateway, {}, as('reader'));
  assert.equal((await held.query(write.sql)).status, 403);
  await held.rollback();
  assert.equal(await cellOf(query('reader', { sql: 'select v from t' })), 'world');
  const written = await databases[0]?.query("select count(*) as n from t where v = 'written'");
  assert.equal(Number(written?.[0]?.n), 0);
});

test('of two limits the smaller one counts, in rows, bytes and time', async () => {
  const many = `with recursive n (seq) as (select 1 union all select seq + 1 from n where seq < 50)
    select seq from n`;
  const countOf = async (name: string) =>
    (await query(name, { sql: many })).json<{ row_count: number }>().row_count;
  assert.deepEqual(
    [await countOf('all'), await countOf('rows'), await countOf('more')],
    [10, 2, 10],
  );
  const asked = await query('rows', { sql: many, max_rows: 5 });
  assert.equal(asked.json<{ row_count: number }>().row_count, 2);
  assert.equal((await gateway.db({ SQL: many }, as('rows'))).text.match(/\[\d+\]/g)?.length, 2);
  const long = { sql: "select repeat('x', 2000)" };
  assert.equal(codeOf(await query('bytes', long)), '422 RESULT_TOO_LARGE');
  assert.equal((await query('all', long)).status, 200);
  const slow = { sql: 'select sleep(20)', timeout_ms: 20_000 };
  assert.equal(codeOf(await query('hasty', slow)), '504 DEADLINE_RUNNING');
});

test('a client waits for a connection no longer than its own max_wait', async (t) => {
  t.after(() => proxy.release());
  await occupy({ ...gateway, dbPost: (asked) => gateway.dbPost(asked, as('all')) }, proxy);
  const reply = await query('impatient', { sql: "select 'impatient'" });
  assert.equal(codeOf(reply), '503 WAITED_TOO_LONG');
});

test('identical reads of one client share an execution, and those of two clients do not', async (t) => {
  t.after(() => proxy.release());
  const SQL = "select 'shared'";
  await occupy({ ...gateway, dbPost: (asked) => gateway.dbPost(asked, as('all')) }, proxy);
  const replies = ['all', 'all', 'other', 'other'].map((name) => gateway.dbPost({ SQL }, as(name)));
  await waiting(gateway, 4);
  proxy.release();
  for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200);
  assert.equal(timesSent(proxy, SQL), 2);
});
